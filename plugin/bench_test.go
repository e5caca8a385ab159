package plugin

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// The processor time is that of both ends, with 100 attempts at once; about
// half of it is the handler process's.
func BenchmarkAttempts(b *testing.B) {
	o := serving(b, Handle("NOTHING", nothing))
	before := cpu()
	inFlight := 0
	for started := 0; started < b.N || inFlight > 0; {
		request := &handlerv1.WorkRequest{}
		for ; started < b.N && inFlight < 100; started++ {
			request.Starts = append(request.Starts, o.newStart("NOTHING", `{"n":1}`))
			inFlight++
		}
		if len(request.Starts) > 0 {
			o.send(request)
		}
		inFlight -= len((<-o.messages).GetOutcomes())
	}
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
