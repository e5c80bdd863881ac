// What the Node drivers have in common; scripts/steps.py says what scenarios and their steps are.

import { readFileSync } from 'node:fs';

const SCENARIO_TIMEOUT_MS = 30_000;

/** One scenario under way: the events that have come, and the lines that tell of them. */
export class Story {
  #name;
  #queue = [];
  #wake = () => {};
  #latest = new Map();

  constructor(scenario) {
    this.#name = scenario.name;
    this.steps = scenario.steps;
  }

  tell(what) {
    process.stdout.write(`${JSON.stringify({ scenario: this.#name, ...what })}\n`);
  }

  /** A server event that the SDK handed over. */
  saw(event) {
    this.tell({ event });
    this.#queue.push(event);
    this.#wake();
  }

  async until(kinds) {
    const waiting = new Set(kinds);
    while (waiting.size > 0) {
      while (this.#queue.length === 0) {
        await new Promise((resolve) => {
          this.#wake = resolve;
        });
      }
      const event = this.#queue.shift();
      this.#latest.set(event.type, event);
      waiting.delete(event.type);
    }
  }

  /** `value` with every "$TYPE:PATH" replaced. */
  filled(value) {
    if (Array.isArray(value)) return value.map((entry) => this.filled(entry));
    if (value !== null && typeof value === 'object') {
      const entries = Object.entries(value).map(([key, entry]) => [key, this.filled(entry)]);
      return Object.fromEntries(entries);
    }
    if (typeof value !== 'string' || !value.startsWith('$')) return value;
    const [kind, path] = value.slice(1).split(':');
    return path.split('.').reduce((found, name) => found[name], this.#latest.get(kind));
  }
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Plays all scenarios of the file named last on the command line at the same time. */
export async function playAll(play) {
  const scenarios = JSON.parse(readFileSync(process.argv.at(-1), 'utf8'));
  const playing = scenarios.map(async (scenario) => {
    const story = new Story(scenario);
    try {
      const late = pause(SCENARIO_TIMEOUT_MS).then(() => {
        throw new Error('the scenario takes too long');
      });
      await Promise.race([play(scenario, story), late]);
      story.tell({ done: true });
    } catch (error) {
      story.tell({ failed: error?.stack ?? String(error) });
    }
  });
  await Promise.all(playing);
  process.exit(0);
}
