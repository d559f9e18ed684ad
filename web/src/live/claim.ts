/**
 * Keeps other tabs of this browser from going live as `name` while this one is: a tab that was duplicated has the secret of the
 * first, and the two would take the name from each other.
 *
 * @returns what gives it up, as closing the tab does; undefined if another tab has it.
 */
export function claim(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const hold = (lock: Lock | null): Promise<void> | undefined => {
      if (lock === null) {
        resolve(undefined);
        return undefined;
      }
      return new Promise((unclaim) => resolve(unclaim));
    };
    navigator.locks.request(`namecast-live:${name}`, { ifAvailable: true }, hold).catch(reject);
  });
}
