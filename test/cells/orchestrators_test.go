package cells

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// second starts another orchestrator of the cell.
func (c *cell) second(t *testing.T) *rig.Orchestrator {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), "database.url="+c.url, fmt.Sprintf("database.cell=%d", c.number),
		"security.password="+password, "log.format=json", "log.level=warn", "plugins.0.name=echo", "plugins.0.path="+filepath.Join(bin, "echo"))
	rigtest.Start(t, o)
	return o
}

// inARow is how many requests must be answered one after the other. It is many more than a
// proxy sends to one orchestrator before it is the other's turn.
const inARow = 40

func TestAProxySendsRequestsToTheOrchestratorOfACellThatLives(t *testing.T) {
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			cells := start(t)
			first, second := cells[0].Orchestrator, cells[0].second(t)
			address := behind(t, name, []string{first.Address + "," + second.Address, cells[1].Address})
			ask := asking(t, address)
			id := asking(t, first.Address)(202, "POST", "/jobs", echo).id(t)
			key := 0
			allAnswered := func() bool {
				for range inARow {
					key++
					got, err := call(t.Context(), http.MethodPost, "http://"+address+"/jobs", echo, "Idempotency-Key", fmt.Sprint("key ", key))
					require.NoError(t, err)
					if got.status == http.StatusAccepted {
						got, err = call(t.Context(), http.MethodGet, "http://"+address+"/jobs/"+id.String(), "")
						require.NoError(t, err)
					}
					if got.status >= 300 {
						require.Contains(t, []int{http.StatusBadGateway, http.StatusServiceUnavailable}, got.status)
						return false
					}
				}
				return true
			}
			require.True(t, allAnswered())
			for _, dead := range []*rig.Orchestrator{second, first} {
				require.NoError(t, dead.Kill())
				require.Eventually(t, allAnswered, rigtest.Patience, glance, "the other one gets all requests")
				_, err := dead.Start(t.Context())
				require.NoError(t, err)
				// A proxy that does not use it again would fail in the next round.
			}
			ask(200, "GET", "/jobs/"+id.String(), "")
			jobs := len(cells[0].jobs(t)) + len(cells[1].jobs(t)) - 1
			require.LessOrEqual(t, jobs, key, "no request makes two jobs")
		})
	}
}
