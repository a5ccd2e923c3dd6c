"""How the report looks: one style sheet, light and dark by what the reader's system prefers, and for paper."""

STYLE = """
:root{--ground:#fbfbf9;--card:#fff;--ink:#1c1d1f;--soft:#62656b;--rule:#e3e3de;--line:#2b66c4;--range:#2b66c433;
--dot:#c2571a;--bar:#2b66c4}
@media (prefers-color-scheme:dark){:root{--ground:#15171a;--card:#1d2024;--ink:#e7e8ea;--soft:#9a9fa8;--rule:#30343a;
--line:#7fb0ff;--range:#7fb0ff33;--dot:#ffa56b;--bar:#5d93e6}}
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
dt+dd{color:var(--ink);font-size:25px;font-weight:600;line-height:1.25}
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
.line{fill:none;stroke:var(--line);stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.range{fill:var(--range)}
.end{fill:var(--line)}
.dot{fill:var(--dot);stroke:var(--card);stroke-width:1}
.error{stroke:var(--dot);stroke-width:1.5}
table{border-collapse:collapse;font-size:14px}
th{font-weight:400;text-align:left;color:var(--soft)}
td{text-align:right;padding:3px 0 3px 16px;overflow-wrap:anywhere}
th{padding:3px 0}
.shares{width:100%;max-width:760px}
.shares th{width:110px}
.shares td{white-space:nowrap}
.bar{width:62%}
.bar i{display:block;height:12px;min-width:1px;background:var(--bar);border-radius:2px}
.plain th{text-align:right;padding-left:16px}
.plain th:nth-child(3),.plain td:nth-child(3){text-align:left}
pre{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px;overflow-x:auto;
font:13px/1.45 ui-monospace,monospace}
.settings{columns:330px;column-gap:28px}
.settings table,.settings+details table{width:100%;margin-bottom:16px;break-inside:avoid}
.settings tr,.settings+details tr{border-top:1px solid var(--rule)}
caption{text-align:left;font-weight:600;padding-bottom:3px}
summary{cursor:pointer;color:var(--soft)}
@media print{body{background:#fff}.settings table,figure,.tiles div{break-inside:avoid}}
"""
