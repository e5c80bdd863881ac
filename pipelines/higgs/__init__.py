"""The Higgs Audio family: text in pieces to speech in pieces, on one sequence per reply."""
