package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (l *ledger) PluginEvents(_ context.Context, filter job.PluginEventFilter) ([]job.PluginEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pluginFilter = filter
	var found []job.PluginEvent
	for _, e := range l.pluginEvents {
		if at := filter.Before; !at.At.IsZero() && (e.At.After(at.At) || e.At.Equal(at.At) && e.ID.String() >= at.ID.String()) {
			continue
		}
		if len(found) < filter.Limit {
			found = append(found, e)
		}
	}
	return found, l.interrupt()
}

func (l *ledger) PluginsEverywhere(context.Context) ([]v1.Orchestrator, error) {
	return []v1.Orchestrator{{
		WorkerID: "worker-1/A", Host: "host-1", Condition: job.WorkerAlive, LastHeartbeat: later, DescribedAt: &later, Plugins: somePlugins().status,
	}}, l.interrupt()
}

func (l *ledger) CommandPlugin(_ context.Context, asked job.PluginCommand) (job.PluginCommand, error) {
	if asked.Plugin == "nobody" {
		return job.PluginCommand{}, job.ErrNoPlugin
	}
	asked.AskedAt, asked.Deadline = later, later.Add(asked.Within)
	asked.Outcomes = []job.PluginOutcome{{Worker: "worker-1/A", Host: "host-1", Result: job.CommandWaiting}}
	l.commanded = asked
	return asked, l.interrupt()
}

func (l *ledger) PluginCommand(_ context.Context, id job.ID) (job.PluginCommand, error) {
	if l.commanded.ID != id {
		return job.PluginCommand{}, job.ErrNoCommand
	}
	c := l.commanded
	c.Outcomes = []job.PluginOutcome{{Worker: "worker-1/A", Host: "host-1", Result: job.CommandRefused, Reason: "no such file", TakenAt: &later, EndedAt: &later}}
	return c, l.interrupt()
}

// somePluginEvents are newest first.
func somePluginEvents() (events []job.PluginEvent) {
	for n := range 3 {
		events = append(events, job.PluginEvent{
			ID: job.ID{15: byte(9 - n)}, At: later, Worker: "worker-1/A", Host: "host-1", Plugin: "shop/mail", Event: job.PluginRolledBack,
			Version: "2", Digest: "bb", Trigger: job.SwapByRequest, Actor: "alice", Reason: "it died", Count: n + 1, Details: json.RawMessage(`{"n":1}`),
		})
	}
	return events
}

func TestPluginEventsAreListedPageAfterPage(t *testing.T) {
	l := newLedger()
	l.pluginEvents = somePluginEvents()
	h := newAPI(t, l)
	answer := send(h, "GET", "/debug/plugins/events?plugin=shop%2Fmail&event=rolled_back&worker=w&limit=2", "")
	require.Equal(t, 200, answer.Code, answer.Body)
	require.Equal(t, job.PluginEventFilter{Plugin: "shop/mail", Worker: "w", Event: job.PluginRolledBack, Limit: 3}, l.pluginFilter)
	var page v1.PluginEventList
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page))
	require.Len(t, page.Events, 2)
	require.NotEmpty(t, page.NextCursor)
	text, err := json.Marshal(page.Events[1])
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"eventId":"00000000-0000-0000-0000-000000000008","at":%q,"worker":"worker-1/A","host":"host-1","plugin":"shop/mail",
		"event":"rolled_back","version":"2","sha256":"bb","trigger":"request","actor":"alice","reason":"it died","count":2,"details":{"n":1}}`,
		later.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")), string(text))

	next := "/debug/plugins/events?limit=2&cursor=" + url.QueryEscape(page.NextCursor)
	require.Equal(t, 422, send(h, "GET", next, "").Code, "of other filters")
	answer = send(h, "GET", next+"&plugin=shop%2Fmail&event=rolled_back&worker=w", "")
	require.Equal(t, 200, answer.Code)
	page = v1.PluginEventList{}
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page))
	require.Len(t, page.Events, 1)
	require.Empty(t, page.NextCursor)

	answer = send(h, "GET", "/debug/plugins/events?before=2026-02-20T00:00:00Z", "")
	require.JSONEq(t, `{"events":[]}`, answer.Body.String())
	require.Equal(t, 422, send(h, "GET", "/debug/plugins/events?event=exploded", "").Code)
}

func TestThePluginsOfAllOrchestratorsAreShown(t *testing.T) {
	answer := send(newAPI(t, newLedger()), "GET", "/debug/plugins/everywhere", "")
	require.Equal(t, 200, answer.Code)
	var found v1.PluginsEverywhere
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &found))
	require.Equal(t, "worker-1/A", found.Orchestrators[0].WorkerID)
	require.Len(t, found.Orchestrators[0].Plugins, 2)
}

func TestACommandIsForAllOrchestratorsWithThePlugin(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	answer := send(h, "POST", "/debug/plugins/shop%2Fmail/commands", `{"command":"swap","force":true,"host":"host-1","timeout":"1m","reason":"why"}`)
	require.Equal(t, 202, answer.Code, answer.Body)
	require.Equal(t, "shop/mail", l.commanded.Plugin)
	require.Equal(t, job.SwapPlugin, l.commanded.Verb)
	require.True(t, l.commanded.Force)
	require.Equal(t, time.Minute, l.commanded.Within)
	require.Equal(t, "host-1", l.commanded.Host)
	var command v1.PluginCommand
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &command))
	require.False(t, command.Ended)

	answer = send(h, "GET", "/debug/plugins/commands/"+command.CommandID.String(), "")
	require.Equal(t, 200, answer.Code, answer.Body)
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &command))
	require.True(t, command.Ended)
	require.Equal(t, "no such file", command.Outcomes[0].Reason)

	require.Equal(t, 404, send(h, "GET", "/debug/plugins/commands/00000000-0000-0000-0000-000000000001", "").Code)
	require.Equal(t, 404, send(h, "POST", "/debug/plugins/nobody/commands", `{"command":"swap"}`).Code)
	for body, place := range map[string]string{
		`{}`: "#/command", `{"command":"explode"}`: "#/command", `{"command":"swap","timeout":"1ms"}`: "#/timeout", `{"command":"swap","all":1}`: "#/all",
	} {
		answer := send(h, "POST", "/debug/plugins/idle/commands", body)
		require.Equal(t, 422, answer.Code, body)
		require.Contains(t, answer.Body.String(), place)
	}
}
