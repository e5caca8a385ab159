package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// part is a part of the code, and what it costs per job.
type part struct {
	name string
	// microseconds of processor time, allocated objects, allocated bytes.
	microseconds, objects, bytes float64
}

// parts are the parts of a process, in the order of its rules.
type parts []part

// total adds up the parts.
func (p parts) total() part {
	sum := part{name: "all"}
	for _, one := range p {
		sum.microseconds += one.microseconds
		sum.objects += one.objects
		sum.bytes += one.bytes
	}
	return sum
}

// rule says which samples belong to a part: those with a function on their stack that matches.
// The first rule that matches counts.
type rule struct {
	name     string
	function *regexp.Regexp
}

func on(name string, functions ...string) rule {
	return rule{name, regexp.MustCompile(strings.Join(functions, "|"))}
}

const (
	host = `holdfast/plugin/host[./]`
	sdk  = `holdfast/plugin\.`
	loop = `holdfast/runtime\.`
)

// What is the same in all processes of Go.
var (
	garbage   = on("garbage collection", `^runtime\.(gcBgMarkWorker|gcAssistAlloc|bgsweep|bgscavenge|gcStart|gcMarkDone|gcMarkTermination)`)
	scheduler = on("scheduler, timers and network poller of Go", `^runtime\.(mcall|mstart|mstart1|sysmon|goexit0|morestack|gopreempt_m|asyncPreempt)$`)
	spawn     = on("new goroutines, growing stacks", `^runtime\.(newproc|newstack)`)
	rest      = on("everything else", ``)
)

// processes are the rules by process. Those that name less come last.
var processes = map[string][]rule{
	"orchestrator": {
		garbage, scheduler, spawn,
		on("metrics", `holdfast/runtime/metrics\.`),
		on("timers and contexts", loop+`\(\*timeLimits\)`, `^time\.(AfterFunc|\(\*Timer\))`, `^context\.With`),
		on("claim: decoding rows", `store\.claimShares\.`, `store\.\(\*claimedRow\)`, `pgx/v5\.ForEachRow`),
		on("claim: statement, lease ids", `store\.\(\*Store\)\.(Claim|claimInOrder)`, `store\.(claimShares|sharesOf)$`),
		on("claim: attempts, queues", loop+`\(\*path\)\.newAttempt`, loop+`\(\*inFlight\)\.add`, loop+`\(\*path\)\.hold`, loop+`\(\*dispatcher\)\.(add|wanted|waitingFor|releaseStale)`),
		on("start: message", host+`internal/message\.\(\*Queue\)\.Start$`, host+`internal/message\.StartBytes`),
		on("start: slot, process's table", host+`.*(reserve|Begin)$`),
		on("start: encoding, sending", host+`internal/connection\.\(\*Process\)\.send$`),
		on("start: rest of dispatching", loop+`\(\*dispatcher\)\.(run|startAll|dispatch)`),
		on("outcome: decoding", `message\.Codec\.Unmarshal`),
		on("outcome: process's table, slot", host+`.*\(\*Process\)\.finish$`+`|`+host+`.*Settle$`+`|`+host+`internal/message\.ReadOutcome`),
		on("stream: TLS, HTTP/2, sockets", `google\.golang\.org/grpc/`, `crypto/tls\.`),
		on("settle: statement, columns, result", `store\.\(\*Store\)\.(Settle|settleAs|SettleWithFollowUps)$`),
		on("settle: decisions, log, ends", loop+`\(\*(path|settler|inFlight)\)`),
		on("other statements", `holdfast/store[./]`),
		rest,
	},
	"handlers": {
		garbage, scheduler, spawn,
		on("timers of leases", sdk+`\(\*leases?\)`),
		on("contexts", `^context\.`),
		on("start: decoding", sdk+`codec\.Unmarshal`),
		on("outcome: encoding", sdk+`codec\.Marshal`, `proto.*Marshal`),
		on("payload, the handler itself", sdk+`newHandler`, sdk+`newJob`, sdk+`Handle`),
		on("outcome: outbox", sdk+`\(\*outbox\)\.(outcome|outcomes|collect)`, sdk+`outcome$`, sdk+`\(\*session\)\.finish`),
		on("stream: TLS, HTTP/2, sockets", `google\.golang\.org/grpc`, `crypto/tls\.`),
		on("start: session's table, goroutine", sdk+`\(\*(session|pool|attempt)\)`),
		rest,
	},
}

// read reads the profiles of all processes of a kind that are in the directory.
func read(dir, process string, rules []rule, jobs int) (parts, error) {
	into := make(parts, len(rules))
	for i, r := range rules {
		into[i].name = r.name
	}
	for ending, add := range map[string]func(*part, []int64){
		".cpu.pprof": func(p *part, v []int64) { p.microseconds += float64(v[1]) / 1000 / float64(jobs) },
		".memory.pprof": func(p *part, v []int64) {
			p.objects += float64(v[0]) / float64(jobs)
			p.bytes += float64(v[1]) / float64(jobs)
		},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*-"+process+"*"+ending))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("there is no profile of %s", process)
		}
		for _, name := range files {
			if err := into.readFile(name, rules, add); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return into, nil
}

func (p parts) readFile(name string, rules []rule, add func(*part, []int64)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	parsed, err := profile.Parse(file)
	if err != nil {
		return err
	}
	for _, sample := range parsed.Sample {
		add(&p[partOf(functions(sample), rules)], sample.Value)
	}
	return nil
}

// functions are those on the stack of a sample.
func functions(sample *profile.Sample) (names []string) {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			names = append(names, line.Function.Name)
		}
	}
	return names
}

// partOf returns the index of the first rule that matches a function. The last rule matches all.
func partOf(functions []string, rules []rule) int {
	return max(slices.IndexFunc(rules, func(r rule) bool { return slices.ContainsFunc(functions, r.function.MatchString) }), 0)
}
