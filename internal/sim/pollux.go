package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
)

// mostJSONBytes bounds the size of a list of jobs in JSON.
const mostJSONBytes = 256 << 20

// polluxJob is a job of a list in JSON whose speeds were measured.
type polluxJob struct {
	Name     string
	At       float64
	Replicas int32
	Max      int32
	Work     float64
	Speed    []float64
	Exp      float64
	App      string
}

// ReadPollux reads a list of jobs in JSON whose speed at every size was measured: name, at (arrival in seconds),
// replicas (the size that its user chose), max, work (seconds of one replica), speed (a list from one replica to max),
// exp and app, which counts as its user. The jobs are elastic, from one replica to max, or rigid, of the size that
// their users chose. An error names the line and the job.
func ReadPollux(list io.Reader, rigid bool) (jobs []Job, err error) {
	text, err := io.ReadAll(io.LimitReader(list, mostJSONBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostJSONBytes {
		return nil, fmt.Errorf("the list has more than %d MiB", mostJSONBytes>>20)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	line := func() int { return bytes.Count(text[:decoder.InputOffset()], []byte("\n")) + 1 }
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return nil, fmt.Errorf("line %d: no list of jobs in JSON begins here", line())
	}
	for decoder.More() {
		var job polluxJob
		if err := decoder.Decode(&job); err != nil {
			return nil, fmt.Errorf("line %d: job %d of the list: %w", line(), len(jobs)+1, err)
		}
		if err := job.check(); err != nil {
			return nil, fmt.Errorf("line %d: job %d of the list, %.40q: %w", line(), len(jobs)+1, job.Name, err)
		}
		jobs = append(jobs, job.job(len(jobs), rigid))
		if len(jobs) > mostJobs {
			return nil, fmt.Errorf("line %d: the list has more than %d jobs", line(), mostJobs)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("line %d: the list is cut off: %w", line(), err)
	}
	return jobs, nil
}

// check returns what makes no sense in the job.
func (p *polluxJob) check() error {
	switch {
	case !(p.At >= 0 && p.At <= mostSeconds):
		return fmt.Errorf("at must be a number of seconds from 0 to %d, not %g", mostSeconds, p.At)
	case !(p.Work > 0 && p.Work <= mostSeconds):
		return fmt.Errorf("work must be a number of seconds above 0 and at most %d, not %g", mostSeconds, p.Work)
	case p.Max < 1 || p.Max > mostReplicas:
		return fmt.Errorf("max must be from 1 to %d, not %d", mostReplicas, p.Max)
	case p.Replicas < 1 || p.Replicas > p.Max:
		return fmt.Errorf("replicas must be from 1 to max, which is %d, not %d", p.Max, p.Replicas)
	case len(p.Speed) < int(p.Max):
		return fmt.Errorf("speed has %d entries, and max is %d", len(p.Speed), p.Max)
	case !(p.Exp > 0 && p.Exp <= 1):
		return fmt.Errorf("exp must be above 0 and at most 1, not %g", p.Exp)
	case len(p.App) > mostUserBytes:
		return fmt.Errorf("app is longer than %d characters", mostUserBytes)
	}
	for i, speed := range p.Speed {
		if !(speed >= leastSpeed && speed <= math.MaxInt32) {
			return fmt.Errorf("speed at %d replicas must be at least %g, not %g", i+1, leastSpeed, speed)
		}
	}
	return nil
}

// leastSpeed keeps the run times of jobs within bounds.
const leastSpeed = 0.001

// job returns the job at this place of the list.
func (p *polluxJob) job(index int, rigid bool) Job {
	out := Job{Name: name(index), Arrives: time.Duration(p.At * float64(time.Second)), Min: 1, Max: p.Max,
		Work: time.Duration(p.Work * float64(time.Second)), Exponent: p.Exp, Speed: p.Speed[:p.Max], User: p.App,
		Time: durations.Known{Kind: "app " + p.App}}
	if rigid {
		out.Min, out.Max = p.Replicas, p.Replicas
	}
	return out
}
