package workflows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// violations are what the record says against the rules: a job begins after those that it
// names have ended for the last time, the last job after all others, and every job ends.
func violations(dag v1.WorkflowSubmission, lines []string) (found []string) {
	after := make(map[string][]string)
	for _, one := range dag.Jobs {
		after[*one.Name] = one.After
		after[last] = append(after[last], *one.Name)
	}
	latest := make(map[string]string) // what each job did last
	followed := make(map[string]string)
	for _, line := range lines {
		what, name, _ := strings.Cut(line, " ")
		switch what {
		case "begin":
			if by := followed[name]; by != "" {
				found = append(found, fmt.Sprintf("%s began again after %s, which comes after it, had begun", name, by))
			}
			for _, before := range after[name] {
				if latest[before] != "end" {
					found = append(found, fmt.Sprintf("%s began before %s had ended", name, before))
				}
				followed[before] = name
			}
		case "end":
		default:
			found = append(found, line)
		}
		latest[name] = what
	}
	for name := range after {
		if latest[name] != "end" {
			found = append(found, name+" did not end")
		}
	}
	return found
}

// begins counts the attempts of the record.
func begins(lines []string) (n int) {
	for _, line := range lines {
		if strings.HasPrefix(line, "begin ") {
			n++
		}
	}
	return n
}

func TestTheCheckerFindsViolations(t *testing.T) {
	a, b := "a", "b"
	dag := v1.WorkflowSubmission{Jobs: []v1.WorkflowJob{{Name: &a}, {Name: &b, After: []string{a}}}}
	for record, want := range map[string][]string{
		"begin a|begin a|end a|begin b|end b|begin last|end last":           nil,
		"begin a|begin b|end a|end b|begin last|end last":                   {"b began before a had ended"},
		"begin a|end a|begin b|begin a|end a|end b|begin last|end last":     {"a began again after b, which comes after it, had begun"},
		"begin a|end a|begin b|begin last|end b|end last":                   {"last began before b had ended"},
		"begin a|end a|begin b|end b|begin last":                            {"last did not end"},
		"begin a|end a|begin b|misread b|begin b|end b|begin last|end last": {"misread b"},
	} {
		require.Equal(t, want, violations(dag, strings.Split(record, "|")), record)
	}
}
