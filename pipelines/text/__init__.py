"""From written text to spoken text: chunks to speak early, and forms that can be spoken.

Text flows segments -> reading -> chunker; narration is this for a reply that is being written,
spoken for a text that is there. The rules that reading applies to a segment:

markup, formula: Markdown, HTML, LaTeX and code. addresses: pages, mailboxes, files.
calendar: dates, years, hours. measures: units and money. numbers: all others; counts tells 1984
people from the year, roman reads Henry VIII. symbols: abbreviations, signs, pictures.

Their words for numbers are in number_words, what they are written in is aligned. look_ahead says
how long a segment must wait; marks, what ends a clause. Back from what was heard: positions and
word_places.
"""
