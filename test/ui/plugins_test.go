package ui

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// pluginSwap is what the API says of the latest swap of the plugin shop.
type pluginSwap struct {
	Result, Reason string
	Trial          struct{ Ended, Failed int }
}

func (s *scene) lastSwap(t testing.TB) (last pluginSwap) {
	t.Helper()
	var found struct {
		Plugins []struct {
			Name     string
			LastSwap *pluginSwap
		}
	}
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/plugins", nil, http.StatusOK, &found))
	for _, one := range found.Plugins {
		if one.Name == "shop" && one.LastSwap != nil {
			last = *one.LastSwap
		}
	}
	return last
}

func TestARollbackAppearsWithItsFiguresAndItsReason(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(bin, "testhandlers"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "shop")
	install := func(content []byte) {
		require.NoError(t, os.WriteFile(path+".new", content, 0o700)) //nolint:gosec // a program
		require.NoError(t, os.Rename(path+".new", path))
	}
	install(good)
	s := newScene(t, "plugins.1.path="+path, "plugins.1.canary.share=0.2", "plugins.1.canary.period=1m", "plugins.1.canary.max_slowdown=0")
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/plugins/shop")
	value[bool](b, `window.same = true`)

	install(append(slices.Clone(good), "fault=fails\n"...))
	batch := make([]rig.Submission, 50)
	for i := range batch {
		batch[i] = rig.Submission{JobType: "WORK", Payload: map[string]any{}}
	}
	require.Eventually(t, func() bool {
		_, err := s.SubmitBatch(t.Context(), batch)
		return err == nil && s.lastSwap(t).Result != ""
	}, patience, 10*glance, "it is judged by its jobs")
	swap := s.lastSwap(t)
	require.Equal(t, "rolled_back", swap.Result)
	require.Contains(t, swap.Reason, "it fails more often: ")
	for _, shown := range []string{"Rolled back", swap.Reason[1:], fmt.Sprintf("Trial: %d of %d failed; serving: ", swap.Trial.Failed, swap.Trial.Ended)} {
		b.await(fmt.Sprintf(`document.querySelector("td[data-label='Latest swap']").innerText.includes(%q)`, shown))
	}
	b.await(`Array.from(document.querySelectorAll("td[data-label=Event]"), e => e.innerText.trim()).includes("Rolled back")`, "it is part of the history")
	require.True(t, value[bool](b, `window.same`), "the page was not loaded again")
}
