// The address names what is shown: #tick=200&agent=3&branch=1. A page that is opened with it shows the same.

export function readLink(hash = location.hash) {
  const found = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name) => {
    const text = found.get(name);
    return text !== null && /^\d{1,8}$/.test(text) ? Number(text) : null;
  };
  return {tick: number("tick"), agent: number("agent"), branch: number("branch")};
}

export function linkOf(app) {
  const parts = [`tick=${app.tick}`];
  if (app.selected >= 0) parts.push(`agent=${app.selected}`);
  const branch = app.recording.branches.indexOf(app.track.branch);
  if (branch > 0) parts.push(`branch=${branch}`);
  return `#${parts.join("&")}`;
}

/** Keep the address up to date, now and then: browsers refuse it a hundred times a second. */
export function keepLink(app) {
  let written = "";
  setInterval(() => {
    if (!app.track || app.playing) return;
    const link = linkOf(app);
    if (link === written) return;
    written = link;
    history.replaceState(null, "", link);
  }, 600);
  addEventListener("hashchange", () => {
    if (location.hash !== written) follow(app, readLink());
  });
}

export function follow(app, {tick, agent, branch}) {
  if (!app.track) return;
  const wanted = app.recording.branches[branch ?? -1];
  if (wanted && wanted !== app.track.branch) app.showBranch(wanted);
  if (agent !== null && agent < app.track.info.numAgents) app.select(agent);
  if (tick !== null) app.seek(tick);
}
