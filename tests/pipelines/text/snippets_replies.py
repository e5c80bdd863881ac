"""What a listener would say of replies as language models write them."""

from __future__ import annotations

REPLIES: list[tuple[str, str]] = [
    (
        "In 1500, there were 1542 people.",
        "In fifteen hundred, there were one thousand five hundred forty two people.",
    ),
    (
        "In 2023 people spent more; in 1999 sales fell.",
        "In twenty twenty three people spent more; in nineteen ninety nine sales fell.",
    ),
    (
        "The 2024 elections and 2023 sales figures.",
        "The twenty twenty four elections and twenty twenty three sales figures.",
    ),
    ("Since 2010 prices have doubled.", "Since twenty ten prices have doubled."),
    ("There are 1984 students.", "There are one thousand nine hundred eighty four students."),
    (
        "It has 1440 minutes and 1024 bytes.",
        "It has one thousand four hundred forty minutes and one thousand twenty four bytes.",
    ),
    ("Around 1650 dollars.", "Around one thousand six hundred fifty dollars."),
    (
        "1588 ships sailed in 1588.",
        "one thousand five hundred eighty eight ships sailed in fifteen eighty eight.",
    ),
    ("About 911 people called 911.", "About nine hundred eleven people called nine one one."),
    ("Call 911 operators now.", "Call nine one one operators now."),
    ("What's 12/3? It's 4.", "What's twelve over three? It's four."),
    ("12/3 = 4", "twelve over three equals four"),
    (
        "By 12/3 you must pay; on 7/4 we celebrate; reduce by 1/3.",
        "By December third you must pay; on July fourth we celebrate; reduce by one third.",
    ),
    (
        "Blood pressure of 120/80 mmHg.",
        "Blood pressure of one hundred twenty over eighty millimeters of mercury.",
    ),
    (
        "23/24 correct, 18/20 and 7/7",
        "twenty three out of twenty four correct, eighteen out of twenty and seven out of seven",
    ),
    ("His record is 12-4-1 this season.", "His record is twelve, four, one this season."),
    (
        "There are apples, pears, etc. You can choose.",
        "There are apples, pears, et cetera. You can choose.",
    ),
    (
        "Fruit (apples, pears, etc.) and nuts, etc. are fine.",
        "Fruit (apples, pears, et cetera) and nuts, et cetera are fine.",
    ),
    ("That's all, folks, etc...", "That's all, folks, et cetera..."),
    ("Main St. The shop is closed.", "Main Street. The shop is closed."),
    ("It's at the corner of 3rd St. and Main.", "It's at the corner of third Street and Main."),
    ("It's on Elm Dr. near the park.", "It's on Elm Drive near the park."),
    (
        "Send it to 1600 Pennsylvania Ave. NW, Washington, DC 20500.",
        "Send it to sixteen hundred Pennsylvania Avenue NW, Washington, DC two zero five "
        "zero zero.",
    ),
    (
        "Visit 350 5th Ave, Apt. 4B, New York, NY 10118.",
        "Visit three hundred fifty fifth Avenue, Apartment four B, New York, NY one zero "
        "one one eight.",
    ),
    (
        "CA 90210 and NY 10001-1234",
        "CA nine zero two one zero and NY one zero zero zero one, one two three four",
    ),
    (
        "Apple Inc. said so. Apple Inc. The firm.",
        "Apple Incorporated said so. Apple Incorporated. The firm.",
    ),
    (
        "In Dec. we go. In Dec. The end. On Dec. 5 we go.",
        "In December we go. In December. The end. On December fifth we go.",
    ),
    ("Closes 5 p.m. The end.", "Closes five p.m., The end."),
    (
        "Open 9 a.m. Thursday, or 3 p.m. Pacific time.",
        "Open nine a.m. Thursday, or three p.m. Pacific time.",
    ),
    ("It starts at 7 PM. Bring snacks.", "It starts at seven p.m., Bring snacks."),
    ("We meet Tue, Wed and Thu.", "We meet Tuesday, Wednesday and Thursday."),
    ("Mon: rain, Tue: sun, Sat-Sun: snow", "Monday: rain, Tuesday: sun, Saturday to Sunday: snow"),
    ("Office hours: Mon–Fri, 9am–5pm.", "Office hours: Monday to Friday, nine a.m. to five p.m."),
    (
        "| Sat | 72°F | 55°F |",
        "Saturday, seventy two degrees Fahrenheit, fifty five degrees Fahrenheit,",
    ),
    ('Expect 2-4" of snow by 6 a.m. EST.', "Expect two to four inches of snow by six a.m. EST."),
    (
        'The TV measures 48.5" x 27.8" x 3.1".',
        "The TV measures forty eight point five inches by twenty seven point eight inches"
        " by three point one inches.",
    ),
    ('A 27" monitor, "the best".', 'A twenty seven inch monitor, "the best".'),
    ('He said "I am 5" and left.', 'He said "I am five" and left.'),
    ("She's 5'4\" and he's 6'1\".", "She's five feet four and he's six feet one."),
    ('Use 1" of water.', "Use one inch of water."),
    ("10 cm x 20 cm x 5 cm", "ten centimeters by twenty centimeters by five centimeters"),
    ("5 x 3 = 15, in a 3 x 4 grid", "five times three equals fifteen, in a three by four grid"),
    (
        "It's a 10x20 ft room, about 200 sq. ft. of space.",
        "It's a ten by twenty foot room, about two hundred square feet of space.",
    ),
    (
        "A 5 km run, an 8 oz. steak and a 10-min walk.",
        "A five kilometer run, an eight ounce steak and a ten minute walk.",
    ),
    ("A $5 bill, a $1.2 million deal.", "A five dollar bill, a one point two million dollar deal."),
    ("A 256GB SSD", "A two hundred fifty six gigabyte SSD"),
    (
        "3/4 tsp. salt and 1 1/2 tsp vanilla.",
        "three quarters teaspoon salt and one and one half teaspoons vanilla.",
    ),
    ("2 min. of rest, 30 sec. Then go.", "two minutes of rest, thirty seconds. Then go."),
    ("It took 1.5 hrs (90 mins).", "It took one point five hours (ninety minutes)."),
    (
        "25 mg/dL, 1000 IU, 70 bpm, 45 pts",
        "twenty five milligrams per deciliter, one thousand international units, seventy "
        "beats per minute, forty five points",
    ),
    ("That's about €12,50 per person.", "That's about twelve euros and fifty cents per person."),
    ("It's 3,5 percent, or 1,5 kg.", "It's three point five percent, or one point five kilograms."),
    ("Pay 1.234,56 €.", "Pay one thousand two hundred thirty four euros and fifty six cents."),
    ("I have 1,2 and 3.", "I have one, two and three."),
    (
        "Prices fell by 0.5%-1.5%.",
        "Prices fell by zero point five percent to one point five percent.",
    ),
    (
        "Temps of 20°C–25°C; 5 kg - 10 kg.",
        "Temps of twenty degrees Celsius to twenty five degrees Celsius; five kilograms "
        "to ten kilograms.",
    ),
    ("b² - 4 = 0", "b squared minus four equals zero"),
    ("Flight BA2490 and an RTX4090", "Flight BA two four nine zero and an RTX four zero nine zero"),
    (
        "The number is 020 7946 0958.",
        "The number is zero two zero, seven nine four six, zero nine five eight.",
    ),
    (
        "World War II, Part III, Rocky IV, an IV drip.",
        "World War two, Part three, Rocky four, an IV drip.",
    ),
    (
        "King Charles III and Elizabeth II's reign.",
        "King Charles the third and Elizabeth the second's reign.",
    ),
    ("She was born c. 1850.", "She was born circa eighteen fifty."),
    ("She got a B+ and an A-.", "She got a B plus and an A minus."),
    ("Press Ctrl+C or Cmd+Shift+P.", "Press Control plus C or Command plus Shift plus P."),
    (
        "The file is at /etc/nginx/nginx.conf.",
        "The file is at slash etc slash nginx slash nginx dot conf.",
    ),
    ("Version v2.1.0 is out.", "Version two point one point zero is out."),
    ("Add 1⁄2 cup sugar.", "Add one half cup sugar."),
    ("He/she can choose.", "He or she can choose."),
    ("It's 5 km - which is far.", "It's five kilometers, which is far."),
    ("It was 72°F — really.", "It was seventy two degrees Fahrenheit, really."),
    (
        "Of 1345 cases, 1200 were solved.",
        "Of one thousand three hundred forty five cases, twelve hundred were solved.",
    ),
    (
        "Schedule for Tue, Dec 2:\n- ½ tsp salt",
        "Schedule for Tuesday, December second: one half teaspoon salt",
    ),
    (
        "57.9M km (36M mi), 1.2M users, 3M tape",
        "fifty seven point nine million kilometers (thirty six million miles), one point two "
        "million users, three M tape",
    ),
    ("3 million km and 2 million people", "three million kilometers and two million people"),
    ("100s of people, 1000s of dollars", "hundreds of people, thousands of dollars"),
    ("Your order #A-10293", "Your order number A one zero two nine three"),
    ("A 45-yr-old, avg. 5 yrs, 2x4s", "A forty five year-old, average five years, two by fours"),
    ("- Closes 5 p.m.\n- Opens 9 a.m.", "Closes five p.m., Opens nine a.m."),
    ("The FY2024 report", "The FY twenty twenty four report"),
    ('A 3/8" bit and a 5" pipe', "A three eighths inch bit and a five inch pipe"),
]
