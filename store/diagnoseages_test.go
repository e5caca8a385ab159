package store

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// anAge matches a time.Duration of whole seconds.
var anAge = regexp.MustCompile(`\b(?:\d+h)?(?:\d+m)?\d+s\b`)

// requireSaid checks that the text contains what is wanted, in which ages are as of some moment
// no longer ago than passed.
func requireSaid(t *testing.T, text, want string, passed time.Duration) {
	t.Helper()
	var pattern strings.Builder
	between := anAge.Split(want, -1)
	for i, fixed := range between {
		if i > 0 {
			pattern.WriteString("(" + anAge.String() + ")")
		}
		pattern.WriteString(regexp.QuoteMeta(fixed))
	}
	found := regexp.MustCompile(pattern.String()).FindStringSubmatch(text)
	require.NotNil(t, found, "%q does not say %q", text, want)
	for i, age := range anAge.FindAllString(want, -1) {
		least, err := time.ParseDuration(age)
		require.NoError(t, err)
		said, err := time.ParseDuration(found[i+1])
		require.NoError(t, err)
		require.GreaterOrEqual(t, said, least, text)
		require.LessOrEqual(t, said, least+passed+time.Second, text)
	}
}

func TestAgesMayGrowWhileATestRuns(t *testing.T) {
	requireSaid(t, "[a: for 2m1s b]", "[a: for 2m0s b]", 0)
	requireSaid(t, "parked 3m0s ago, 1h0m1s", "parked 2m0s ago, 1h0m0s", time.Minute)
	requireSaid(t, "no age", "age", 0)
}
