package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// paper is a notebook on which a test can read what was written.
type paper struct {
	saved    *slept
	progress []slept
}

func (p *paper) Progress(v any) error {
	p.progress = append(p.progress, v.(slept))
	return nil
}

func (p *paper) Checkpoint(v any) error {
	done := v.(slept)
	p.saved = &done
	return nil
}

func (p *paper) Resume(v any) (bool, error) {
	if p.saved == nil {
		return false, nil
	}
	text, err := json.Marshal(p.saved)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, v)
}

func TestSleepTakesItsTimeAndTellsOfEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes paper
		begun := time.Now()
		require.NoError(t, sleep(t.Context(), sleepArgs{SleepSeconds: 300}, &notes))
		require.Equal(t, 300*time.Second, time.Since(begun))
		require.Len(t, notes.progress, 301)
		require.Equal(t, slept{0, 300}, notes.progress[0], "it tells at once that it runs")
		require.Equal(t, slept{300, 300}, notes.progress[300])
		require.Equal(t, slept{300, 300}, *notes.saved)
	})
}

func TestSleepGoesOnWhereTheLastAttemptStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes paper
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { stop(plugin.ErrShutdown) })
		require.ErrorIs(t, sleep(ctx, sleepArgs{SleepSeconds: 5}, &notes), plugin.ErrShutdown)
		require.Equal(t, slept{2, 5}, *notes.saved)

		begun := time.Now()
		require.NoError(t, sleep(t.Context(), sleepArgs{SleepSeconds: 5}, &notes))
		require.Equal(t, 3*time.Second, time.Since(begun))
	})
}

func TestSleepTakesOneToThreeHundredSeconds(t *testing.T) {
	for _, seconds := range []int{-1, 0, 301} {
		require.ErrorContains(t, sleep(t.Context(), sleepArgs{SleepSeconds: seconds}, &paper{}), "not 1..300")
	}
}

func TestFailAlwaysFails(t *testing.T) {
	err := fail(t.Context(), plugin.Job[failArgs]{Args: failArgs{Message: "no such printer"}})
	require.EqualError(t, err, "no such printer")
	require.EqualError(t, fail(t.Context(), plugin.Job[failArgs]{}), "FAIL_JOB always fails")
	require.Nil(t, errors.Unwrap(err), "a plain error is tried again")
}
