"""Whole replies and sentences, with what is said of them."""

SENTENCES: list[tuple[str, str]] = [
    (
        "Sure! The meeting is at 3:30 pm on Nov 29, 2026, and it costs **$5.50** per person.",
        "Sure! The meeting is at three thirty p.m. on November twenty ninth, twenty "
        "twenty six, and it costs five dollars and fifty cents per person.",
    ),
    (
        "We will walk about 5 km through the *old town*, then visit the museum, which "
        "opened in 1999.",
        "We will walk about five kilometers through the old town, then visit the "
        "museum, which opened in nineteen ninety nine.",
    ),
    (
        "Dr. Smith paid $1,234.56 for 3.5 kg of rice, i.e. too much.",
        "Doctor Smith paid one thousand two hundred thirty four dollars and fifty six "
        "cents for three point five kilograms of rice, that is too much.",
    ),
    (
        "See [the docs](https://docs.example.com/v2/intro) or mail help@example.com.",
        "See the docs or mail help at example dot com.",
    ),
    (
        "If it's 72°F outside, open the window 🙂; otherwise, don't.",
        "If it's seventy two degrees Fahrenheit outside, open the window; otherwise, don't.",
    ),
    (
        "Version 2.0.1 came out on 2024-03-15 at 9 a.m. sharp.",
        "Version two point zero point one came out on March fifteenth, twenty twenty "
        "four at nine a.m. sharp.",
    ),
    (
        "The ratio was 3:1, and 75% of 1,000 users agreed (p < 0.05).",
        "The ratio was three to one, and seventy five percent of one thousand users "
        "agreed (p less than zero point zero five).",
    ),
    (
        "Call (555) 123-4567 between 9 am and 5 pm, Mon. to Fri.",
        "Call five five five, one two three, four five six seven between nine a.m. and "
        "five p.m., Monday to Friday.",
    ),
    (
        "Water boils at 100 °C, which is 212 °F.",
        "Water boils at one hundred degrees Celsius, which is two hundred twelve "
        "degrees Fahrenheit.",
    ),
    (
        "He ran 42.195 km in 2:01:09!",
        "He ran forty two point one nine five kilometers in two oh one oh nine!",
    ),
    (
        "Add 1/2 cup of milk, 2 tbsp sugar & 250 g flour.",
        "Add one half cup of milk, two tablespoons sugar and two hundred fifty grams flour.",
    ),
    (
        "The train leaves at 15:45 from platform 9¾.",
        "The train leaves at fifteen forty five from platform nine and three quarters.",
    ),
    (
        "My score went from 3-2 to 5-2 in the 2nd half.",
        "My score went from three to two to five to two in the second half.",
    ),
    ("It's 5'10\" tall and weighs 70 kg.", "It's five feet ten tall and weighs seventy kilograms."),
    (
        'About ~20 people said "yes", 5 said "no".',
        'About about twenty people said "yes", five said "no".',
    ),
    ("The first item is #1, then #2.", "The first item is number one, then number two."),
    (
        "Between 1990 and 2005, prices rose by 3.5% per year.",
        "Between nineteen ninety and two thousand five, prices rose by three point "
        "five percent per year.",
    ),
    ("Use `ls -la /tmp` to list files.", "Use ls la slash tmp to list files."),
    (
        "Email me at john.doe@example.com, or visit www.example.org.",
        "Email me at john dot doe at example dot com, or visit example dot org.",
    ),
    (
        "Here is a list:\n\n- First item\n- Second item\n- Third item\n\nWhich one?",
        "Here is a list: First item. Second item. Third item. Which one?",
    ),
    (
        "Steps:\n\n1. Open the **Settings**.\n2. Tap *Wi-Fi*.\n3. Choose your network.\n",
        "Steps: one, Open the Settings. two, Tap Wi-Fi. three, Choose your network.",
    ),
    ("The answer is 42.", "The answer is forty two."),
    (
        "That is 10 times 10, or 10^2 = 100.",
        "That is ten times ten, or ten squared equals one hundred.",
    ),
    ("I think, therefore I am.", "I think, therefore I am."),
    ("Yes. No. Maybe!", "Yes. No. Maybe!"),
    ("Hello there! How can I help you today?", "Hello there! How can I help you today?"),
    ("The U.S. has 50 states.", "The U.S. has fifty states."),
    (
        "It opens at 8:00 and closes at 20:00.",
        "It opens at eight o'clock and closes at twenty hundred.",
    ),
    ("You owe me $20.", "You owe me twenty dollars."),
    (
        "In 2020 the U.S. had 331,000,000 people.",
        "In twenty twenty the U.S. had three hundred thirty one million people.",
    ),
    ("1 mile is 1.609 km.", "one mile is one point six zero nine kilometers."),
    ("Room 12B, 3rd floor.", "Room twelve B, third floor."),
    ("The Wi-Fi code is A1B2.", "The Wi-Fi code is A one B two."),
    ("Chapter 3: The End", "Chapter three: The End"),
    ("Pi is 3.14159.", "Pi is three point one four one five nine."),
    ("A 5-star hotel for €120/night", "A five star hotel for one hundred twenty euros per night"),
    (
        "The 100 m sprint takes 9.58 s.",
        "The one hundred meters sprint takes nine point five eight seconds.",
    ),
    ("Press 1 for English, 2 for Spanish.", "Press one for English, two for Spanish."),
    ("Version 10.15.7 (2019)", "Version ten point fifteen point seven (twenty nineteen)"),
    ("Please wait 30 seconds...", "Please wait thirty seconds..."),
    (
        "As of 12/31/2025, 8 billion people live on Earth.",
        "As of December thirty first, twenty twenty five, eight billion people live on Earth.",
    ),
    (
        "From Jan 5 to Feb 10, it rains 3x more.",
        "From January fifth to February tenth, it rains three times more.",
    ),
    ("Temperature: -40°C", "Temperature: minus forty degrees Celsius"),
    ("The 7th of July, 7 p.m.", "The seventh of July, seven p.m."),
    ("Size: 10 x 20 cm", "Size: ten by twenty centimeters"),
    ("Speed: 300,000 km/s", "Speed: three hundred thousand kilometers per second"),
    ("Mix 2:1 with water.", "Mix two to one with water."),
    ("She was born on March 3rd, 1985.", "She was born on March third, nineteen eighty five."),
    (
        "Total = $45 + $5 = $50",
        "Total equals forty five dollars plus five dollars equals fifty dollars",
    ),
    (
        "CPU at 4.2 GHz, 32 GB RAM, 1 TB SSD.",
        "CPU at four point two gigahertz, thirty two gigabytes RAM, one terabyte SSD.",
    ),
    (
        "The year 1066 and the year 2101",
        "The year ten sixty six and the year two thousand one hundred one",
    ),
    ("So 3 < 5 and 7 > 2.", "So three less than five and seven greater than two."),
    ("He's no. 1!", "He's number one!"),
    (
        "Open 24/7, 365 days a year.",
        "Open twenty four seven, three hundred sixty five days a year.",
    ),
    (
        "Mr. and Mrs. Brown live at 221B Baker St. in London.",
        "Mister and Missus Brown live at two hundred twenty one B Baker Street in London.",
    ),
    ("I'd say 50/50.", "I'd say fifty fifty."),
    (
        "I'm on it. Here's what I found:\n\n**Weather in Paris** 🌤️\n- High: 22°C "
        "(72°F)\n- Low: 14°C\n- Rain: 10–20%\n\nAnything else?",
        "I'm on it. Here's what I found: Weather in Paris High: twenty two degrees "
        "Celsius (seventy two degrees Fahrenheit). Low: fourteen degrees Celsius. "
        "Rain: ten to twenty percent. Anything else?",
    ),
    (
        "To install it, run:\n\n```bash\npip install parley\n```\n\nThen open "
        "`http://localhost:8000` in your browser.",
        "To install it, run: The code is on the screen. Then open localhost in your browser.",
    ),
    (
        "Your order #4521 (2 items, $34.99) ships by 12/3 via UPS; tracking: 1Z999AA10123456784.",
        "Your order number four thousand five hundred twenty one (two items, thirty "
        "four dollars and ninety nine cents) ships by December third via UPS; tracking: "
        "one Z nine nine nine AA one zero one two three four five six seven eight four.",
    ),
    (
        "The flight departs at 06:45, arrives at 10:20 local time (UTC-5), a 3h 35m trip.",
        "The flight departs at six forty five, arrives at ten twenty local time (UTC "
        "minus five), a three hours thirty five minutes trip.",
    ),
    (
        "Einstein (1879–1955) published E=mc² in 1905.",
        "Einstein (eighteen seventy nine to nineteen fifty five) published E equals mc "
        "squared in nineteen oh five.",
    ),
    (
        "Set the oven to 350°F, bake for 25-30 min, and let cool 10 min.",
        "Set the oven to three hundred fifty degrees Fahrenheit, bake for twenty five "
        "to thirty minutes, and let cool ten minutes.",
    ),
    (
        "The score was 24-17 at halftime; they won 31–28.",
        "The score was twenty four to seventeen at halftime; they won thirty one to twenty eight.",
    ),
    (
        "My email's john_smith99@gmail.com and my number's 1-800-555-0199.",
        "My email's john smith ninety nine at gmail dot com and my number's one, eight "
        "zero zero, five five five, zero one nine nine.",
    ),
    ("Call 1-800-FLOWERS.", "Call one, eight hundred, FLOWERS."),
    (
        "On a scale of 1-10, it's a 7.5/10.",
        "On a scale of one to ten, it's a seven point five out of ten.",
    ),
    (
        "Your balance is -$1,204.33 as of 9/30.",
        "Your balance is minus one thousand two hundred four dollars and thirty three "
        "cents as of nine thirty.",
    ),
    (
        "There are approx. 7.9 billion people, i.e., 7,900,000,000.",
        "There are approximately seven point nine billion people, that is, seven "
        "billion nine hundred million.",
    ),
    (
        "He's 6'1\", 185 lbs., b. 1985.",
        "He's six feet one, one hundred eighty five pounds, b. nineteen eighty five.",
    ),
    (
        "Try again at 8 p.m. or so, or 8:15 p.m.",
        "Try again at eight p.m. or so, or eight fifteen p.m.",
    ),
    (
        "That's a 2x4 board, 3/8\" bolts and a 1/2-inch drill.",
        "That's a two by four board, three eighths inch bolts and a one half-inch drill.",
    ),
    (
        "Q: What's 15% of $80? A: $12.",
        "Q: What's fifteen percent of eighty dollars? A: twelve dollars.",
    ),
    (
        "JFK (b. May 29, 1917) was the 35th U.S. president.",
        "JFK (b. May twenty ninth, nineteen seventeen) was the thirty fifth U.S. president.",
    ),
    (
        "The COVID-19 pandemic (2019–2023) cost ~$14T.",
        "The COVID nineteen pandemic (twenty nineteen to twenty twenty three) cost "
        "about fourteen trillion dollars.",
    ),
    (
        "The Model 3's range is 358 mi; 0–60 in 3.1s.",
        "The Model three's range is three hundred fifty eight miles; zero to sixty in "
        "three point one seconds.",
    ),
    (
        "WWII ended in 1945, Henry VIII reigned 1509-1547.",
        "WWII ended in nineteen forty five, Henry the eighth reigned fifteen oh nine to "
        "fifteen forty seven.",
    ),
    (
        "Turn to p. 42, §3.1, ch. 5.",
        "Turn to page forty two, section three point one, chapter five.",
    ),
    (
        "It takes 1–2 hours/day, 5 days/week, ~$15/hr.",
        "It takes one to two hours per day, five days per week, about fifteen dollars per hour.",
    ),
    ("H1: 5 of 10; H2: 10 of 10.", "H one: five of ten; H two: ten of ten."),
    ("5:00 AM EST to 7:30 PM PST", "five a.m. EST to seven thirty p.m. PST"),
    ("1st place: Ann; 2nd place: Bob.", "first place: Ann; second place: Bob."),
    (
        "The '60s, mid-1970s, and late 80's",
        "The sixties, mid-nineteen seventies, and late eighties",
    ),
]
