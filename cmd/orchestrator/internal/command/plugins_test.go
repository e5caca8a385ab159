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

func TestPluginsOfAllOrchestratorsAreListedByWorker(t *testing.T) {
	const mail = `"plugins":[{"name":"mail","version":"1.0","sha256":"2c26b46b68ffc68f","state":"broken","processes":2,"pids":[7],"lastError":"it does not start"}]`
	f := &fake{answers: map[string]string{"GET /debug/plugins/everywhere": `{"orchestrators":[
		{"workerId":"api-1","host":"a","condition":"alive","lastHeartbeat":"2026-02-20T12:00:00Z","plugins":[]},
		{"workerId":"worker-1","host":"b","condition":"alive","lastHeartbeat":"2026-02-20T12:00:00Z",` + mail + `},
		{"workerId":"worker-2","host":"c","condition":"silent","lastHeartbeat":"2026-02-20T11:59:00Z",` + mail + `}]}`}}
	out, notes, err := f.run(t, "plugins", "list", "--everywhere")
	require.NoError(t, err)
	require.Contains(t, out, "worker-1  mail    broken  1.0 (2c26b46b)        1/2")
	require.Contains(t, out, "worker-2  mail    broken")
	require.NotContains(t, out, "api-1")
	require.Equal(t, "worker-1, mail: it does not start\n"+
		"worker-2 is silent: this is what it said before, and its last heartbeat was 1m00s ago.\n"+
		"worker-2, mail: it does not start\n", notes)
}

func TestAnOrchestratorWithoutPluginsSaysWhereToLook(t *testing.T) {
	f := &fake{answers: map[string]string{"GET /debug/plugins": `{"plugins":[]}`}}
	_, notes, err := f.run(t, "plugins", "list")
	require.NoError(t, err)
	require.Equal(t, "This orchestrator has no plugins: --everywhere shows those of all.\n", notes)
}
