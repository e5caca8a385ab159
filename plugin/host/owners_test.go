package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// register is a ledger that has no jobs and knows who owns which type.
type register struct {
	jobsThere
	mu     sync.Mutex
	owners map[string]string
	err    error
}

func newRegister() *register { return &register{owners: make(map[string]string)} }

func (r *register) OwnTypes(_ context.Context, plugin string, types, moved []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range types {
		if owner := r.owners[name]; owner != "" && owner != plugin && !slices.Contains(moved, name) {
			return &job.TypeOwnedError{Type: name, Plugin: owner}
		}
	}
	for _, name := range types {
		if r.err == nil {
			r.owners[name] = plugin
		}
	}
	return r.err
}

func (r *register) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *register) kept(s *Settings) { s.Ledger = r }

func TestAPluginThatIsUpFirstDoesNotTakeTheTypesOfAnother(t *testing.T) {
	t.Parallel()
	ledger := newRegister()
	good := misbehaving("good", "-types", "GOOD")
	t.Run("good serves", func(t *testing.T) {
		startHost(t, ledger.kept, good).awaitUp("good", 1)
	})
	evil := misbehaving("evil", "-types", "EVIL,GOOD")
	h := startHost(t, ledger.kept, evil)
	h.eventually(func() bool { return h.status("evil").State == job.PluginBroken }, "the thief is refused")
	require.Equal(t, "job type GOOD belongs to plugin good, which served it before; to move it, list it as a type of plugin evil in the configuration",
		h.status("evil").LastError)
	require.Empty(t, h.Types())
	require.Equal(t, map[string]string{"GOOD": "good"}, ledger.owners)

	require.NoError(t, h.Reload([]Config{evil, good}))
	h.awaitUp("good", 1)
	require.Equal(t, []string{"GOOD"}, h.status("good").JobTypes)
}

func TestATypeMovesToThePluginThatListsIt(t *testing.T) {
	t.Parallel()
	ledger := newRegister()
	old, heir := misbehaving("old", "-types", "KEPT,MOVED"), misbehaving("heir", "-types", "MOVED,SPARE")
	h := startHost(t, ledger.kept, old)
	h.awaitUp("old", 1)

	heir.Types = []string{"MOVED"}
	require.NoError(t, h.Reload([]Config{old, heir}))
	h.eventually(func() bool {
		var names []string
		for _, spec := range h.Types() {
			require.NotContains(t, names, spec.Type, "each is declared once while it moves, too")
			names = append(names, spec.Type)
		}
		return len(h.status("heir").PIDs) == 1
	}, "the heir is up")
	h.eventually(func() bool { return slices.Equal(h.status("old").JobTypes, []string{"KEPT"}) }, "the old owner has left the type")
	require.Equal(t, []string{"MOVED"}, h.status("old").SkippedJobTypes)
	require.Equal(t, []string{"MOVED"}, h.status("heir").JobTypes)
	require.Equal(t, []string{"SPARE"}, h.status("heir").SkippedJobTypes, "it is not listed")
	for _, pool := range h.Pools() {
		require.Equal(t, map[string][]string{"old": {"KEPT"}, "heir": {"MOVED"}}[pool.Plugin], pool.Types)
	}
	require.Equal(t, map[string]string{"KEPT": "old", "MOVED": "heir"}, ledger.owners)
	require.Zero(t, h.status("heir").Restarts)
	require.Zero(t, h.status("old").Crashes)
}

func TestATypeCanMoveAwayFromAPluginThatHasNoOther(t *testing.T) {
	t.Parallel()
	old, heir := misbehaving("old", "-types", "MOVED"), misbehaving("heir", "-types", "MOVED,SPARE")
	h := startHost(t, newRegister().kept, old)
	h.awaitUp("old", 1)
	require.NoError(t, h.Reload([]Config{old, heir}))
	h.eventually(func() bool { return h.status("heir").State == job.PluginBroken }, "it is refused")

	heir.Types = []string{"MOVED", "SPARE"}
	require.NoError(t, h.Reload([]Config{old, heir}))
	h.awaitUp("heir", 1)
	h.eventually(func() bool { return len(h.Pools()) == 1 && len(h.status("old").JobTypes) == 0 }, "the old owner has left the type")
	require.Equal(t, []string{"MOVED", "SPARE"}, h.Pools()[0].Types)
}

func TestAPluginKeepsItsOtherTypesWhenOneMoves(t *testing.T) {
	t.Parallel()
	good, evil := misbehaving("good", "-types", "GOOD"), misbehaving("evil", "-types", "EVIL,GOOD")
	h := startHost(t, newRegister().kept, good)
	h.awaitUp("good", 1)
	require.NoError(t, h.Reload([]Config{good, evil}))
	h.eventually(func() bool { return h.status("evil").State == job.PluginBroken }, "it is refused")

	good.Types = []string{"GOOD"}
	require.NoError(t, h.Reload([]Config{good, evil}))
	h.awaitUp("evil", 1)
	require.Equal(t, []string{"EVIL"}, h.status("evil").JobTypes)
}

func TestAPluginThatLostATypeIsLaunchedAgainWithTheRest(t *testing.T) {
	t.Parallel()
	old, heir := misbehaving("old", "-types", "KEPT,MOVED"), misbehaving("heir", "-types", "MOVED,SPARE")
	h := startHost(t, newRegister().kept, old)
	h.awaitUp("old", 1)
	old.Checksum, heir.Types = strings.Repeat("0", 64), []string{"MOVED"}
	require.NoError(t, h.Reload([]Config{old, heir}))
	h.awaitUp("heir", 1)
	h.eventually(func() bool {
		return h.status("old").LastSwap != nil && h.status("old").LastSwap.Result == job.SwapRefused
	}, "its swap is refused")

	a, r := assignment(do("exit")), newReport()
	a.Type = "KEPT"
	_, err := h.Start("old", a, r)
	require.NoError(t, err)
	require.Equal(t, job.Crash, h.outcome(r).Kind)
	h.eventually(func() bool { return h.status("old").Crashes == 1 && len(h.status("old").PIDs) == 1 }, "it is launched again")
}

func TestAPluginWithoutAnyTypeIsRefused(t *testing.T) {
	t.Parallel()
	config := misbehaving("plugin", "-types", "A,B")
	config.Types = []string{"C"}
	h := startHost(t, nil, config)
	h.eventually(func() bool { return h.status("plugin").State == job.PluginBroken }, "it is refused")
	require.Equal(t, `the configuration gives it none of the job types that it declares: ["A" "B"]`, h.status("plugin").LastError)
}

func TestAPluginWaitsForALedgerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ledger := newRegister()
	ledger.fail(errors.New("no database"))
	h := startHost(t, ledger.kept, misbehaving("plugin", "-types", "A"))
	h.eventually(func() bool { return h.status("plugin").Restarts > 0 }, "it is not started unasked")
	require.Equal(t, "cannot find out whether it may serve its job types: no database", h.status("plugin").LastError)
	ledger.fail(nil)
	h.awaitUp("plugin", 1)

	ledger.fail(errors.New("no database"))
	a, r := assignment(do("exit")), newReport()
	a.Type = "A"
	_, err := h.Start("plugin", a, r)
	require.NoError(t, err)
	require.Equal(t, job.Crash, h.outcome(r).Kind)
	h.eventually(func() bool { return h.status("plugin").Crashes == 1 && len(h.status("plugin").PIDs) == 1 },
		"a version that was admitted is launched again without asking")
}

func TestATypeMayBeListedOnlyOnce(t *testing.T) {
	t.Parallel()
	a, b := misbehaving("a"), misbehaving("b")
	a.Types, b.Types = []string{"X"}, []string{"Y", "X"}
	_, err := Start(t.Context(), testSettings(socketDir(t), &journal{}), []Config{a, b})
	require.EqualError(t, err, "plugin b: job type X is listed twice, also under plugin a")
}
