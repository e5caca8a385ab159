package ui_test

import (
	"fmt"
	"testing"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// BenchmarkOverview is what one poll of a tab costs beside many job types, without the readings
// that all tabs share.
func BenchmarkOverview(b *testing.B) {
	answers, metrics, series := healthy(), v1.Metrics{At: noon, StatusCounts: map[job.State]int64{job.Queued: 12}}, v1.Series{At: noon, SlotSeconds: 10}
	const slots = 90
	for i := range slots {
		took := &v1.SeriesLatency{Attempts: 1034, P50: 0.004, P95: 1.5}
		series.Slots = append(series.Slots, v1.SeriesSlot{Start: noon.Add(time.Duration(i-slots) * 10 * time.Second), Succeeded: 1000, Dead: int64(i), Wait: took, Run: took})
	}
	for i := range 12 {
		jobType := fmt.Sprint("TYPE_", i)
		metrics.Queues = append(metrics.Queues, v1.Queue{JobType: jobType, Queued: 12, Dead: 7, Served: true})
		one := v1.SeriesType{JobType: jobType, Ended: make([]int64, slots), Failed: make([]int64, slots)}
		for slot := range slots {
			one.Ended[slot], one.Failed[slot] = int64(100+slot), int64(slot%7)
		}
		series.JobTypes = append(series.JobTypes, one)
	}
	answers["GET /metrics"], answers["GET /debug/series"] = metrics, series
	p := newPages(answers)
	poll := func(headers ...string) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.get("/ui/", append(headers, "Hf-Fragment: live-overview", "Accept-Encoding: gzip")...)
			}
		}
	}
	b.Run("changed", poll())
	tag := p.get("/ui/", "Hf-Fragment: live-overview").Header().Get("Etag")
	b.Run("unchanged", poll("If-None-Match: "+tag))
}
