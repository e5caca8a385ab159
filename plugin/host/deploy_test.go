package host

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var allStates = []deployState{
	stateServing, stateProbation, stateStarting, stateCanary, statePromoting, stateDisabling, stateDisabled, stateClosed,
}

var allEvents = []deployEvent{
	eventSwap, eventTry, eventPass, eventPromote, eventReplace, eventRestart, eventReject, eventSettle,
	eventDisable, eventRetire, eventEnable, eventEnableOnProbation, eventClose,
}

// legal lists every legal edge again, independently of the table.
var legal = map[deployState]map[deployEvent]deployState{
	stateServing:   {eventSwap: stateStarting, eventDisable: stateDisabling, eventClose: stateClosed},
	stateProbation: {eventSwap: stateStarting, eventSettle: stateServing, eventDisable: stateDisabling, eventClose: stateClosed},
	stateStarting:  {eventTry: stateCanary, eventPass: statePromoting, eventReject: stateBefore, eventDisable: stateDisabling},
	stateCanary:    {eventPass: statePromoting, eventReject: stateBefore, eventDisable: stateDisabling},
	statePromoting: {
		eventPromote: stateProbation, eventReplace: stateServing, eventRestart: stateBefore, eventReject: stateBefore,
		eventDisable: stateDisabling,
	},
	stateDisabling: {eventReject: stateDisabling, eventDisable: stateDisabling, eventRetire: stateDisabled, eventClose: stateClosed},
	stateDisabled: {
		eventEnable: stateServing, eventEnableOnProbation: stateProbation, eventDisable: stateDisabled, eventClose: stateClosed,
	},
}

func TestEveryEventOfADeployIsLegalOrAnError(t *testing.T) {
	t.Parallel()
	for _, from := range allStates {
		for _, event := range allEvents {
			for _, before := range []deployState{stateServing, stateProbation} {
				t.Run(fmt.Sprintf("%s/%s/began in %s", from, event, before), func(t *testing.T) {
					d := deploy{state: from, before: before}
					want, ok := legal[from][event]
					err := d.fire(event)
					if !ok {
						require.Equal(t, illegalEvent{from, event}, err)
						require.Equal(t, deploy{state: from, before: before}, d, "nothing changes")
						return
					}
					require.NoError(t, err)
					if want == stateBefore {
						want = before
					}
					require.Equal(t, want, d.state)
					if event == eventSwap {
						require.Equal(t, from, d.before, "a swap that fails returns to it")
					}
				})
			}
		}
	}
}

func TestADeployCanReachEveryStateAndLeaveAllButTheLast(t *testing.T) {
	t.Parallel()
	reached := map[deployState]bool{stateServing: true}
	for range allStates {
		for from, edges := range deployTable {
			for _, to := range edges {
				reached[to] = reached[to] || reached[from]
			}
		}
	}
	for _, state := range allStates {
		require.True(t, reached[state], state)
		require.Equal(t, state == stateClosed, len(deployTable[state]) == 0, state)
	}
}

// The table and the documentation have the same states and edges.
func TestTheDocumentationHasEveryEdgeOfADeploy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/explanation/deploys.md")
	require.NoError(t, err)
	var documented, want []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 4 && strings.Contains(cells[1], "`") {
			cell := func(i int) string { return strings.Trim(strings.TrimSpace(cells[i]), "`") }
			documented = append(documented, cell(0)+" + "+cell(1)+" = "+cell(2))
		}
	}
	for from, edges := range deployTable {
		for event, to := range edges {
			want = append(want, fmt.Sprintf("%s + %s = %s", from, event, to))
		}
	}
	slices.Sort(documented)
	slices.Sort(want)
	require.Equal(t, want, documented)
}
