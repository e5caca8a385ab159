package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListNeverSaysThatAServingVersionDoesNotServe(t *testing.T) {
	const serving, other = "2c26b46b68ffc68f", "fcde2b2edba56bf4"
	for _, c := range []struct{ state, to, result, said string }{
		{"up", serving, "promoted", "mail: 1.0 (2c26b46b) serves again: version \"2.0\" kept failing\n"},
		{"disabled", serving, "promoted", ""},
		{"up", other, "promoted", ""},
		{"up", serving, "rolled_back", "mail: 1.0 (2c26b46b) did not take over: version \"2.0\" kept failing\n"},
		{"up", other, "refused", "mail: 1.0 (fcde2b2e) does not serve: version \"2.0\" kept failing\n"},
	} {
		f := &fake{answers: map[string]string{"GET /debug/plugins": `{"plugins":[{"name":"mail","version":"1.0","sha256":"` + serving +
			`","state":"` + c.state + `","lastSwap":{"to":{"version":"1.0","sha256":"` + c.to + `"},"begunAt":"2026-02-20T11:58:50Z","endedAt":"2026-02-20T11:58:53Z","result":"` +
			c.result + `","reason":"version \"2.0\" kept failing"}}]}`}}
		_, notes, err := f.run(t, "plugins", "list")
		require.NoError(t, err)
		require.Equal(t, c.said, notes, c.result)
	}
}
