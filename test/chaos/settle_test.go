//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func TestOnlyAPauseOfWhichACallGotNoAnswerMayBeLeft(t *testing.T) {
	unanswered := map[string]string{history.Unanswered: "503"}
	r := &run{injected: []history.Fault{
		{Kind: "pause-all", Target: "all"},
		{Kind: "limit-type", Target: "all", Parameters: unanswered},
		{Kind: "pause-type", Target: "CHAOS_GOOD", Parameters: unanswered},
	}}
	require.False(t, r.mayBeLeft("all"), "its end was answered")
	require.True(t, r.mayBeLeft("CHAOS_GOOD"))
	require.False(t, r.mayBeLeft("CHAOS_NODE"), "nobody has paused it")
}
