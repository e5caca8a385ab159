// Package capacity estimates what a rate of jobs takes of a database and its machines, from
// figures that were measured.
package capacity

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Need is what somebody wants to run.
type Need struct {
	// Rate is how many jobs a second are submitted, and worked, on average.
	Rate float64
	// Payload is how many bytes the payload of a job has, its result included.
	Payload int64
	// Keep is how long ended jobs stay.
	Keep time.Duration
	// Orchestrators share the work.
	Orchestrators int
}

// The most that a Need may ask for. No estimate overflows below them.
const (
	MaxRate          = 1_000_000
	MaxOrchestrators = 10_000
	MaxLedger        = 1_000_000_000_000_000_000 // bytes
)

// Validate returns an error if the need is out of bounds.
func (n Need) Validate() error {
	switch {
	case !(n.Rate > 0 && n.Rate <= MaxRate): // not a number either
		return fmt.Errorf("--rate must be above 0 and at most %d jobs a second", MaxRate)
	case n.Orchestrators < 1 || n.Orchestrators > MaxOrchestrators:
		return fmt.Errorf("--orchestrators must be at least 1 and at most %d", MaxOrchestrators)
	case n.Rate*n.Keep.Seconds()*float64(jobBytes(n.Payload)) > MaxLedger:
		return errors.New("--rate, --payload and --keep make a ledger of more than 1,000,000 TB: lower one of them")
	}
	return nil
}

// Range is what something takes at least and at most: if clients submit in batches, and if
// each submits a job a call.
type Range struct {
	Batches float64 `json:"batches"`
	Single  float64 `json:"single"`
}

func (r Range) plus(both float64) Range { return Range{r.Batches + both, r.Single + both} }

func (r Range) times(by float64) Range { return Range{r.Batches * by, r.Single * by} }

// Estimate is what it takes.
type Estimate struct {
	// JobBytes and JobWAL are those of a job: on disk with its indexes once it has ended, and
	// written to the log until then.
	JobBytes int64 `json:"jobBytes"`
	JobWAL   int64 `json:"jobWalBytes"`

	// Jobs are kept when as many are deleted as are submitted.
	Jobs int64 `json:"jobs"`
	// Ledger is the size of them, Disk that with the log and room for vacuum.
	Ledger int64 `json:"ledgerBytes"`
	Disk   int64 `json:"diskBytes"`
	// WAL is in bytes a second, deletion included: what a standby receives and a disk takes.
	// MostWAL is that if every page is written whole after each checkpoint.
	WAL     float64 `json:"walBytesPerSecond"`
	MostWAL float64 `json:"mostWalBytesPerSecond"`
	// DatabaseCores and ProgramCores are processors in use: by PostgreSQL, and by
	// orchestrators with no-op handlers together.
	DatabaseCores Range `json:"databaseCores"`
	ProgramCores  Range `json:"programCores"`
	// Connections are those of all orchestrators.
	Connections int `json:"connections"`
}

// Plan estimates what a valid need takes.
func Plan(n Need) Estimate {
	e := Estimate{
		JobBytes: jobBytes(n.Payload),
		JobWAL:   int64(math.Round(at(n.Payload, func(p point) float64 { return p.wal }))),
		Jobs:     int64(n.Rate * n.Keep.Seconds()),
	}
	e.Ledger = e.Jobs * e.JobBytes
	e.Disk = int64(float64(e.Ledger)*(1+vacuumRoom)) + logSpace
	e.WAL = n.Rate * (float64(e.JobWAL) + deletedWAL)
	e.MostWAL = e.WAL * wholePages
	seconds := n.Rate / 1e6 // of each microsecond of a job
	e.DatabaseCores = databaseTime.times(at(n.Payload, func(p point) float64 { return p.time })).plus(deletedTime).times(seconds)
	e.ProgramCores = programTime.times(seconds)
	e.Connections = n.Orchestrators * orchestratorConnections
	return e
}

func jobBytes(payload int64) int64 {
	return int64(math.Round(at(payload, func(p point) float64 { return p.disk })))
}

// at interpolates between the measured points, and goes on beyond the last as between the
// last two.
func at(payload int64, value func(point) float64) float64 {
	i := 1
	for i < len(points)-1 && points[i].payload < payload {
		i++
	}
	low, high := points[i-1], points[i]
	share := float64(payload-low.payload) / float64(high.payload-low.payload)
	return value(low) + share*(value(high)-value(low))
}

// Remarks say what the estimate cannot show, and what to do about it.
func (e Estimate) Remarks(n Need) (remarks []string) {
	if e.Connections > MaxConnections {
		remarks = append(remarks, e.tooManyConnections(n.Orchestrators))
	}
	if n.Rate > MeasuredRate {
		remarks = append(remarks, fmt.Sprintf("More than %d jobs a second are beyond these measurements, in which two cores did all of the work. "+
			"Try it with orchestrator bench on your machine.", MeasuredRate))
	}
	if e.Ledger > MaxTable {
		remarks = append(remarks, "A table of PostgreSQL has at most 32 TiB, and the ledger is one: keep jobs for a shorter time, or split the work into cells.")
	}
	if last := points[len(points)-1].payload; n.Payload > last {
		remarks = append(remarks, fmt.Sprintf("Payloads of more than %d bytes were not measured: these figures go on as between the last two that were.", last))
	}
	return remarks
}

// tooManyConnections says what to set. doctor warns of more than 80 %.
func (e Estimate) tooManyConnections(orchestrators int) string {
	enough := (e.Connections*10/8 + 9) / 10 * 10
	remark := fmt.Sprintf("%d orchestrators use up to %d connections, and PostgreSQL allows %d by default. Set max_connections of PostgreSQL to %d",
		orchestrators, e.Connections, MaxConnections, enough)
	if each := (MaxConnections-reservedConnections)/orchestrators - besidePools; each >= leastPool {
		remark += fmt.Sprintf(", or database.max_connections of each orchestrator to %d", each)
	}
	if orchestrators < poolerFrom {
		return remark + "."
	}
	return remark + fmt.Sprintf(". With as many, prefer PgBouncer, through which all of them share %d: see %s and %s.", pooled, scale, postgresql)
}
