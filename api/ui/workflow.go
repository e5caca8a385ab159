package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/graph"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	stepsPerPage = 100
	// maxBefore is how many of the jobs before one are named.
	maxBefore = 10
	// maxDrawn is how many jobs have a box each. Of more, those of a column and a state share one.
	maxDrawn = 1000
)

// workflowPage is a workflow with its jobs.
type workflowPage struct {
	v1.WorkflowDetail
	// Counts are how many jobs are in each state.
	Counts []stepCount
	Acts   []jobAct
	Graph  workflowGraph
	// Shown are the jobs of a page of the table, Matching how many it has in all.
	Shown    []shownStep
	Matching int
	Chips    []setFilter
	// Newer and Older are pages of the table; empty for none.
	Newer, Older string
	// Last is onComplete; nil for none.
	Last *shownStep
	// Reason is what was sent. Typed is the number to type before all is canceled; empty for none.
	Reason, Typed string
	// Every is after how many seconds the page is read again, at least.
	Every int
}

// stepCount is how many jobs are in a state, and where they are listed.
type stepCount struct {
	shownState
	Count int
	Path  string
}

// shownStep is a job of a workflow as people see it.
type shownStep struct {
	v1.WorkflowStep
	Look  shownState
	Depth int
	// Before are the first of those before it, and Others how many more there are.
	Before []v1.WorkflowStep
	Others int
}

// Label is its name, or else what it is.
func (s shownStep) Label() string {
	if s.OnComplete {
		return "On complete"
	}
	return cmp.Or(s.Name, s.JobType, shortID(s.JobID))
}

// Column is the number of its column in the graph, from 1.
func (s shownStep) Column() int { return s.Depth + 1 }

// workflowGraph is the picture of a workflow.
type workflowGraph struct {
	graph.Drawing
	Nodes []graphNode
	// Grouped says that the jobs of a column and a state share a box.
	Grouped bool
	// Small says that there are boxes without names.
	Small bool
}

// graphNode is a box that leads somewhere.
type graphNode struct {
	graph.Box
	shownState
	ID, Path, Label string
}

// marks say the state of a job where there is no room for a word, by its class.
var marks = map[string]string{
	"queued": "•", "created": "◦", "held": "‖", "retry": "↻", "running": "▸", "succeeded": "✓", "dead": "×", "canceled": "–",
}

// Mark is a sign for a state.
func (s shownState) Mark() string { return marks[s.Class] }

func showWorkflow(v *visit) (answer, error) { return v.workflowPage(nil) }

// workflowPage is the page again if the refusal of a form is not nil.
func (v *visit) workflowPage(refused *v1.Problem) (answer, error) {
	shown := workflowPage{Reason: v.form("reason")}
	if err := v.get(client.Path("workflows", v.param("id")), nil, &shown.WorkflowDetail); err != nil {
		return nil, err
	}
	steps := stepsOf(shown.WorkflowDetail)
	shown.Acts = actsOnWorkflow(v, shown.WorkflowDetail)
	shown.count(steps)
	shown.Graph = graphOf(shown.WorkflowID, steps)
	shown.page(v, steps)
	if shown.Remaining > typedAbove {
		shown.Typed = strconv.Itoa(shown.Remaining)
	}
	if len(steps) > stepsPerPage {
		shown.Every = 10
	}
	title := "Workflow " + cmp.Or(shown.Name, shortID(shown.WorkflowID))
	return view{Template: "workflow", Title: title, Data: shown, Problem: refused}, nil
}

func stepsOf(w v1.WorkflowDetail) []shownStep {
	byName, steps := make(map[string]int, len(w.Steps)), make([]shownStep, len(w.Steps))
	for i, step := range w.Steps {
		if step.Name != "" {
			byName[step.Name] = i
		}
	}
	for i, step := range w.Steps {
		steps[i] = shownStep{WorkflowStep: step, Look: lookOf(step, w.State)}
		for _, name := range step.After[:min(len(step.After), maxBefore)] {
			steps[i].Before = append(steps[i].Before, w.Steps[byName[name]])
		}
		steps[i].Others = len(step.After) - len(steps[i].Before)
	}
	for i, depth := range graph.Depths(linesOf(steps)) {
		steps[i].Depth = depth
	}
	return steps
}

// lookOf tells jobs that wait for others from those that are held or not due.
func lookOf(step v1.WorkflowStep, whole job.WorkflowState) shownState {
	look := stateOf(step.State, whole == job.WorkflowHeld)
	switch {
	case step.Skipped:
		look.Name = "Skipped"
	case step.State == job.Created && step.Missing > 0:
		look.Name, look.Class = "Waiting", "created"
	}
	return look
}

// linesOf are for each job the indexes of those before it. onComplete is after all that nothing
// else is after.
func linesOf(steps []shownStep) [][]int {
	byName, lines, last := make(map[string]int, len(steps)), make([][]int, len(steps)), make([]bool, len(steps))
	for i, step := range steps {
		last[i] = true
		if step.Name != "" {
			byName[step.Name] = i
		}
	}
	for i, step := range steps {
		for _, name := range step.After {
			if before, known := byName[name]; known {
				lines[i] = append(lines[i], before)
				last[before] = false
			}
		}
	}
	for i, step := range steps {
		if !step.OnComplete {
			continue
		}
		for before := range steps {
			if last[before] && before != i {
				lines[i] = append(lines[i], before)
			}
		}
	}
	return lines
}

// statesShown is the order in which states are shown.
var statesShown = []string{"Dead", "Retrying", "Running", "Queued", "Scheduled", "Waiting", "Held", "Skipped", "Canceled", "Succeeded"}

func (w *workflowPage) count(steps []shownStep) {
	found := map[string]int{}
	for i, step := range steps {
		found[step.Look.Name]++
		if step.OnComplete {
			w.Last = &steps[i]
		}
	}
	for _, name := range statesShown {
		at := slices.IndexFunc(steps, func(s shownStep) bool { return s.Look.Name == name })
		if at >= 0 {
			w.Counts = append(w.Counts, stepCount{steps[at].Look, found[name], stepsPath(w.WorkflowID, name, -1, 0)})
		}
	}
}

// stepsPath leads to the jobs of a state, empty for all, and of a column, below 0 for all.
func stepsPath(id job.ID, state string, depth, from int) string {
	query := url.Values{}
	if state != "" {
		query.Set("state", strings.ToLower(state))
	}
	if depth >= 0 {
		query.Set("depth", strconv.Itoa(depth))
	}
	if from > 0 {
		query.Set("from", strconv.Itoa(from))
	}
	return withQuery(workflowPath(id), query) + "#steps"
}

// page chooses the rows of the table.
func (w *workflowPage) page(v *visit, steps []shownStep) {
	state, depth := capital(v.query("state")), -1
	if asked, err := strconv.Atoi(v.query("depth")); err == nil && asked >= 0 {
		depth = asked
		w.Chips = append(w.Chips, setFilter{"Column " + strconv.Itoa(depth+1), stepsPath(w.WorkflowID, state, -1, 0)})
	}
	if state != "" {
		w.Chips = append(w.Chips, setFilter{state, stepsPath(w.WorkflowID, "", depth, 0)})
	}
	for _, step := range steps {
		if (state == "" || step.Look.Name == state) && (depth < 0 || step.Depth == depth) {
			w.Shown = append(w.Shown, step)
		}
	}
	w.Matching = len(w.Shown)
	from, _ := strconv.Atoi(v.query("from")) // 0 for what is no number
	from = min(max(from, 0), len(w.Shown))
	if from > 0 {
		w.Newer = stepsPath(w.WorkflowID, state, depth, max(from-stepsPerPage, 0))
	}
	if to := from + stepsPerPage; to < len(w.Shown) {
		w.Older = stepsPath(w.WorkflowID, state, depth, to)
	}
	w.Shown = w.Shown[from:min(from+stepsPerPage, len(w.Shown))]
}

func graphOf(id job.ID, steps []shownStep) workflowGraph {
	lines := linesOf(steps)
	if len(steps) > maxDrawn {
		return groupedGraph(id, steps, lines)
	}
	made := workflowGraph{Drawing: graph.Of(lines)}
	for i, box := range made.Boxes {
		step := steps[i]
		made.Small = made.Small || box.Small
		made.Nodes = append(made.Nodes, graphNode{box, step.Look, "node-" + step.JobID.String(), jobPath(step.JobID), step.Label()})
	}
	return made
}

// groupedGraph has a box for the jobs of each column that are in the same state.
func groupedGraph(id job.ID, steps []shownStep, lines [][]int) workflowGraph {
	type group struct {
		depth int
		look  shownState
	}
	var groups []group
	var after [][]int
	at, counts := map[group]int{}, map[group]int{}
	groupOf := func(i int) group { return group{steps[i].Depth, steps[i].Look} }
	for i := range steps {
		g := groupOf(i)
		if counts[g]++; counts[g] == 1 {
			at[g] = len(groups)
			groups, after = append(groups, g), append(after, nil)
		}
	}
	for i, before := range lines {
		to := at[groupOf(i)]
		for _, one := range before {
			if from := at[groupOf(one)]; !slices.Contains(after[to], from) {
				after[to] = append(after[to], from)
			}
		}
	}
	made := workflowGraph{Drawing: graph.Of(after), Grouped: true}
	for i, box := range made.Boxes {
		g := groups[i]
		name := strconv.Itoa(g.depth) + "-" + strings.ToLower(g.look.Name)
		made.Nodes = append(made.Nodes, graphNode{box, g.look, "node-" + name, stepsPath(id, g.look.Name, g.depth, 0), plural(counts[g], "job", "jobs")})
	}
	return made
}

// Text is the label as far as the box has room for it.
func (n graphNode) Text() string {
	const room = 23
	if runes := []rune(n.Label); len(runes) > room {
		return string(runes[:room-1]) + "…"
	}
	return n.Label
}

// In is a place in the box: so far right of its left side, or down from its top.
func (n graphNode) In(right, down int) [2]int { return [2]int{n.X + right, n.Y + down} }
