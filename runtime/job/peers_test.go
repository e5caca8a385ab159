package job

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACrowdIsThoseWhoCanDoTheSame(t *testing.T) {
	all, worker, api := AllRoles(), Roles{RoleWorker}, Roles{RoleAPI}
	for name, c := range map[string]struct {
		live  []Peers
		types []string
		want  Crowd
	}{
		"nobody is known":                 {nil, []string{"A"}, Crowd{1, 1, 1}},
		"alike":                           {[]Peers{{50, all, []string{"A", "B"}}}, []string{"A", "B"}, Crowd{50, 50, 50}},
		"no types":                        {[]Peers{{50, all, []string{"A"}}}, nil, Crowd{1, 50, 50}},
		"each has a type of its own":      {[]Peers{{1, worker, []string{"A"}}, {1, worker, []string{"B"}}}, []string{"A"}, Crowd{1, 1, 2}},
		"a type that few serve":           {[]Peers{{9, all, []string{"A"}}, {2, worker, []string{"A", "B"}}}, []string{"A", "B"}, Crowd{2, 9, 11}},
		"one that has all and many fewer": {[]Peers{{9, all, []string{"A"}}, {2, worker, []string{"A", "B"}}}, []string{"A"}, Crowd{11, 9, 11}},
		"an API runs nothing":             {[]Peers{{9, api, []string{"A"}}}, []string{"A"}, Crowd{1, 1, 9}},
	} {
		require.Equal(t, c.want, CrowdOf(c.live, c.types), name)
	}
}
