package runtime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func none(string, string) bool { return false }

func TestStoppedTypesHaveNoPlan(t *testing.T) {
	pools := []job.Pool{
		{Plugin: "p", Types: []string{"A", "B"}},
		{Plugin: "q", Types: []string{"A", "B", "C"}, Room: map[string]int{"A": 1}},
		{Plugin: "r", Types: []string{"A"}},
	}
	stopped := func(plugin, jobType string) bool { return jobType == "A" || plugin == "q" && jobType == "B" }
	var shown []string
	for _, p := range plansOf(pools, nil, 0, stopped) {
		shown = append(shown, fmt.Sprint(p.pool.Plugin, p.types, p.bound))
	}
	require.Equal(t, []string{"p[B]", "q[C]"}, shown)
	require.Equal(t, []string{"A", "B"}, pools[0].Types, "left as they are")
}

func TestTypesWithABoundOfTheirOwnAreClaimedByThemselves(t *testing.T) {
	plain := job.Pool{Plugin: "plain", Types: []string{"A", "B"}, Free: 5}
	mixed := job.Pool{Plugin: "mixed", Types: []string{"C", "D", "E"}, Free: 5, Room: map[string]int{"D": 2, "E": 0}}
	only := job.Pool{Plugin: "only", Types: []string{"F"}, Free: 5, Room: map[string]int{"F": 3}}
	waiting := map[jobTypeOf]int{{"mixed", "D"}: 1, {"plain", "D"}: 7, {"only", "F"}: 4}
	cut := func(turn int) (shown []string) {
		for _, p := range plansOf([]job.Pool{plain, mixed, only}, waiting, turn, none) {
			text := fmt.Sprint(p.pool.Plugin, p.types)
			if p.bound != "" {
				text += fmt.Sprintf(" at most %d", p.room)
			}
			shown = append(shown, text)
		}
		return shown
	}
	require.Equal(t, []string{"plain[A B]", "mixed[D] at most 1", "mixed[E] at most 0", "mixed[C]", "only[F] at most -1"}, cut(0))
	require.Equal(t, []string{"plain[A B]", "mixed[E] at most 0", "mixed[C]", "mixed[D] at most 1", "only[F] at most -1"}, cut(1))
	require.Equal(t, []string{"C", "D", "E"}, mixed.Types, "left as they are")
}
