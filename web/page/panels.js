// What opens from the header: the files to save, the latency beside the conversation, the settings.

const byId = (id) => document.getElementById(id);

// settings: the SettingsView, whose dialog is #settings.
export function bindPanels(settings) {
  byId('open-downloads').addEventListener('click', () => showDownloads(!isDownloadsOpen()));
  document.addEventListener('click', ({ target }) => {
    if (!target.closest('#open-downloads')) showDownloads(false);
  });
  byId('open-latency').addEventListener('click', () => {
    byId('latency').hidden = !byId('latency').hidden;
    tellExpanded('open-latency', !byId('latency').hidden);
  });
  byId('open-settings').addEventListener('click', () => {
    settings.open();
    tellExpanded('open-settings', true);
  });
  byId('settings').addEventListener('close', () => tellExpanded('open-settings', false));
}

// What the Escape key closes, if anything is open: whether it did.
export function closePanel() {
  if (byId('settings').open) return true; // the browser closes a dialog by itself
  if (!isDownloadsOpen()) return false;
  showDownloads(false);
  byId('open-downloads').focus();
  return true;
}

function isDownloadsOpen() {
  return byId('downloads').classList.contains('is-open');
}

function showDownloads(isShown) {
  byId('downloads').classList.toggle('is-open', isShown);
  tellExpanded('open-downloads', isShown);
}

function tellExpanded(id, isExpanded) {
  byId(id).setAttribute('aria-expanded', String(isExpanded));
}
