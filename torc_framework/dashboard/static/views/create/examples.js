// Small specs to begin with; they run on any machine.

export const EXAMPLES = [
  {
    name: "diamond",
    title: "Four jobs in a diamond",
    text: `name: diamond
description: Four jobs; the two in the middle run at the same time
jobs:
  - name: prepare
    command: echo "preparing" && sleep 2
  - name: left
    command: echo "left" && sleep 3
    depends_on: [prepare]
  - name: right
    command: echo "right" && sleep 4
    depends_on: [prepare]
  - name: report
    command: echo "done"
    depends_on: [left, right]
`,
  },
  {
    name: "sweep",
    title: "A sweep over two parameters",
    text: `name: sweep
description: Nine jobs, one for each pair of values
jobs:
  - name: train_lr{lr}_depth{depth}
    command: echo "learning rate {lr}, depth {depth}" && sleep 1
    parameters:
      lr: "[0.001,0.01,0.1]"
      depth: "1:3"
  - name: compare
    command: echo "comparing"
    depends_on_regexes: ["train_.*"]
`,
  },
  {
    name: "failing",
    title: "A job that fails",
    text: `name: failing
description: One of three jobs fails; the dashboard shows why
jobs:
  - name: good
    command: echo "fine"
  - name: bad
    command: echo "reading input"; echo "FileNotFoundError no such file input.csv" >&2; exit 2
  - name: after
    command: echo "never reached"
    depends_on: [good, bad]
`,
  },
];
