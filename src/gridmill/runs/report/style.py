"""How the report looks: one style sheet, light and dark by what the reader's system prefers, and for paper."""

STYLE = """
:root{--ground:#fbfbf9;--card:#fff;--ink:#1c1d1f;--soft:#62656b;--rule:#e3e3de;
--dot:#c2571a;--bar:#2b66c4;--level:#8a8d93;--live:#2f8f57;
--c0:#2b66c4;--c1:#c2571a;--c2:#2f8f57;--c3:#8a4fb5;--c4:#b8860b;--c5:#c2386e;--c6:#17869a;--c7:#6b6f76}
@media (prefers-color-scheme:dark){:root{--ground:#15171a;--card:#1d2024;--ink:#e7e8ea;--soft:#9a9fa8;--rule:#30343a;
--dot:#ffa56b;--bar:#5d93e6;--level:#7d828b;--live:#69c78f;
--c0:#7fb0ff;--c1:#ffa56b;--c2:#69c78f;--c3:#c79bf0;--c4:#e3bd54;--c5:#ff8fb8;--c6:#5cc9dc;--c7:#a9adb5}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.2;margin:0;overflow-wrap:anywhere}
header p{color:var(--soft);margin:4px 0 0}
h2{font-size:17px;margin:36px 0 12px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0 0}
.tiles div,figure{background:var(--card);border:1px solid var(--rule);border-radius:10px}
.tiles div{padding:12px 16px}
dt{color:var(--soft);font-size:13px}
dd{margin:0;color:var(--soft);font-size:13px}
dt+dd{color:var(--ink);font-size:clamp(20px,5.2vw,25px);font-weight:600;line-height:1.25;white-space:nowrap}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:12px}
figure{margin:0;padding:12px 10px 6px;display:flex;flex-direction:column;justify-content:space-between}
figcaption{padding:0 6px 6px;overflow-wrap:anywhere}
figcaption span{float:right;font-weight:600}
small{display:block;color:var(--soft);font-size:12px;line-height:1.35}
small.key{color:var(--dot)}
svg{display:block;width:100%;height:auto}
.rule{stroke:var(--rule);stroke-width:1}
.tick{fill:var(--soft);font-size:11px}
.right{text-anchor:end}
.middle{text-anchor:middle}
.title{fill:var(--soft);font-size:11px}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.line.faint{stroke-width:1;opacity:.4}
.range{opacity:.18;stroke:none}
.level{stroke:var(--level);stroke-width:1.2;stroke-dasharray:5 4}
.line.c0{stroke:var(--c0)}.range.c0,.end.c0{fill:var(--c0)}.key.c0{color:var(--c0)}
.line.c1{stroke:var(--c1)}.range.c1,.end.c1{fill:var(--c1)}.key.c1{color:var(--c1)}
.line.c2{stroke:var(--c2)}.range.c2,.end.c2{fill:var(--c2)}.key.c2{color:var(--c2)}
.line.c3{stroke:var(--c3)}.range.c3,.end.c3{fill:var(--c3)}.key.c3{color:var(--c3)}
.line.c4{stroke:var(--c4)}.range.c4,.end.c4{fill:var(--c4)}.key.c4{color:var(--c4)}
.line.c5{stroke:var(--c5)}.range.c5,.end.c5{fill:var(--c5)}.key.c5{color:var(--c5)}
.line.c6{stroke:var(--c6)}.range.c6,.end.c6{fill:var(--c6)}.key.c6{color:var(--c6)}
.line.c7{stroke:var(--c7)}.range.c7,.end.c7{fill:var(--c7)}.key.c7{color:var(--c7)}
.hover{pointer-events:none}
.cross{stroke:var(--soft);stroke-width:1;opacity:.6}
.tip rect{fill:var(--card);stroke:var(--rule);opacity:.95}
.tip text{fill:var(--ink);font-size:11px}
.live{font-size:13px;font-weight:600;color:var(--live);border:1px solid var(--live);border-radius:20px;padding:1px 10px;
vertical-align:middle;margin-left:8px}
.wide{grid-column:1/-1}
.wide svg+svg{display:none}
@media (max-width:700px){.wide svg{display:none}.wide svg+svg{display:block}}
.full{grid-column:1/-1}
.full>div{overflow-x:auto}
.full svg{min-width:680px}
.trial{fill:none;stroke:var(--c0);stroke-width:1.6;stroke-linejoin:round}
.trial.pruned{stroke:var(--c7);stroke-width:1}
.trial.best{stroke:var(--c1);stroke-width:2.6}
.mark{fill:var(--c0)}
.mark.pruned{fill:none;stroke:var(--c7);stroke-width:1.4;opacity:.7}
.mark.best{fill:var(--c1)}
.column{stroke:var(--soft);stroke-width:1}
.name{fill:var(--ink);font-size:12px;font-weight:600}
.named{paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.still{color:var(--soft);font-size:13px;grid-column:1/-1;margin:2px 0 8px}
a{color:var(--c0)}
.keys{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:4px 20px;font-weight:600}
.keys li:before,.scores td.key:before{content:"\\25CF\\00A0"}
.scores td:first-child{text-align:left;padding-left:0}
.scores td.key{font-weight:600}
.scores td.inner{padding-left:18px;color:var(--soft)}
.scores th:first-child{text-align:left;padding-left:0}
ul{padding-left:20px;margin:6px 0}
.dot{fill:var(--dot);stroke:var(--card);stroke-width:1}
.error{stroke:var(--dot);stroke-width:1.5}
table{border-collapse:collapse;font-size:14px}
th{font-weight:400;text-align:left;color:var(--soft)}
td{text-align:right;padding:3px 0 3px 16px;overflow-wrap:anywhere}
th{padding:3px 0}
.shares{width:100%;max-width:760px}
.shares th{width:110px}
.shares td{white-space:nowrap}
.shares.long th{width:auto;padding-right:16px}
.bar{width:62%}
.bar i{display:block;height:12px;min-width:1px;background:var(--bar);border-radius:2px}
.plain{display:block;overflow-x:auto}
.plain td,.plain th{white-space:nowrap}
.plain th{text-align:right;padding-left:16px}
.plain:not(.scores) th:nth-child(3),.plain:not(.scores) td:nth-child(3){text-align:left}
pre{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px;overflow-x:auto;
font:13px/1.45 ui-monospace,monospace}
pre.words{white-space:pre-wrap;overflow-wrap:anywhere}
.settings{columns:330px;column-gap:28px}
.settings table,.settings+details table{width:100%;margin-bottom:16px;break-inside:avoid}
.settings tr,.settings+details tr{border-top:1px solid var(--rule)}
caption{text-align:left;font-weight:600;padding-bottom:3px}
summary{cursor:pointer;color:var(--soft)}
@media print{body{background:#fff}.settings table,figure,.tiles div{break-inside:avoid}}
"""
