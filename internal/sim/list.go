package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
)

// mostJSONBytes bounds the size of a list of jobs in JSON.
const mostJSONBytes = 256 << 20

// listed is a job of a list in JSON: a rigid one that runs for some time, or one whose speed at every size was
// measured.
type listed struct {
	Name     string
	At       float64
	Replicas int32
	App      string
	User     string
	Priority int32
	Limit    float64
	Expected float64
	Within   string
	// Run is how long a rigid job runs. A job without it has these.
	Run   float64
	Max   int32
	Work  float64
	Speed []float64
	Exp   float64
}

// ReadList reads a list of jobs in JSON. A job has a name, at (arrival in seconds), replicas (the size that its user
// chose) and run (seconds), or, where its speed at every size was measured, in place of run: max, work (seconds of one
// replica), speed (a list from one replica to max) and exp. Such jobs are elastic, from one replica to max, or rigid,
// of the size that their users chose. What else it may have: user, app (which counts as its user otherwise), priority,
// limit and expected (seconds), and within, the level of a topology of which one domain must hold all its pods. An
// error names the line and the job.
func ReadList(list io.Reader, rigid bool) (jobs []Job, err error) {
	text, err := io.ReadAll(io.LimitReader(list, mostJSONBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostJSONBytes {
		return nil, fmt.Errorf("the list has more than %d MiB", mostJSONBytes>>20)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	line := func() int { return bytes.Count(text[:decoder.InputOffset()], []byte("\n")) + 1 }
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return nil, fmt.Errorf("line %d: no list of jobs in JSON begins here", line())
	}
	for decoder.More() {
		var job listed
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
func (l *listed) check() error {
	isTime := func(seconds float64) bool { return seconds >= 0 && seconds <= mostSeconds }
	switch {
	case !isTime(l.At):
		return fmt.Errorf("at must be a number of seconds from 0 to %d, not %g", mostSeconds, l.At)
	case !isTime(l.Limit):
		return fmt.Errorf("limit must be a number of seconds from 0 to %d, not %g", mostSeconds, l.Limit)
	case !isTime(l.Expected):
		return fmt.Errorf("expected must be a number of seconds from 0 to %d, not %g", mostSeconds, l.Expected)
	case len(l.App) > mostUserBytes:
		return fmt.Errorf("app is longer than %d characters", mostUserBytes)
	case len(l.User) > mostUserBytes:
		return fmt.Errorf("user is longer than %d characters", mostUserBytes)
	case len(l.Within) > mostUserBytes:
		return fmt.Errorf("within is longer than %d characters", mostUserBytes)
	case l.Run != 0:
		return l.checkRigid()
	}
	return l.checkElastic()
}

// checkRigid does so for a job that runs for some time.
func (l *listed) checkRigid() error {
	switch {
	case !(l.Run > 0 && l.Run <= mostSeconds):
		return fmt.Errorf("run must be a number of seconds above 0 and at most %d, not %g", mostSeconds, l.Run)
	case l.Work != 0 || l.Speed != nil || l.Max != 0 || l.Exp != 0:
		return errors.New("a job has either run, or max, work, speed and exp")
	case l.Replicas < 1 || l.Replicas > mostReplicas:
		return fmt.Errorf("replicas must be from 1 to %d, not %d", mostReplicas, l.Replicas)
	}
	return nil
}

// checkElastic does so for a job whose speed was measured.
func (l *listed) checkElastic() error {
	switch {
	case !(l.Work > 0 && l.Work <= mostSeconds):
		return fmt.Errorf("work must be a number of seconds above 0 and at most %d, not %g", mostSeconds, l.Work)
	case l.Max < 1 || l.Max > mostReplicas:
		return fmt.Errorf("max must be from 1 to %d, not %d", mostReplicas, l.Max)
	case l.Replicas < 1 || l.Replicas > l.Max:
		return fmt.Errorf("replicas must be from 1 to max, which is %d, not %d", l.Max, l.Replicas)
	case len(l.Speed) < int(l.Max):
		return fmt.Errorf("speed has %d entries, and max is %d", len(l.Speed), l.Max)
	case !(l.Exp > 0 && l.Exp <= 1):
		return fmt.Errorf("exp must be above 0 and at most 1, not %g", l.Exp)
	}
	for i, speed := range l.Speed {
		if !(speed >= leastSpeed && speed <= math.MaxInt32) {
			return fmt.Errorf("speed at %d replicas must be at least %g, not %g", i+1, leastSpeed, speed)
		}
	}
	return nil
}

// leastSpeed keeps the run times of jobs within bounds.
const leastSpeed = 0.001

// job returns the job at this place of the list.
func (l *listed) job(index int, rigid bool) Job {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	out := Job{Name: name(index), Arrives: seconds(l.At), Min: l.Replicas, Max: l.Replicas, Work: seconds(l.Run),
		User: cmp.Or(l.User, l.App), Priority: l.Priority, Within: l.Within,
		Time: durations.Known{Limit: seconds(l.Limit), Expected: seconds(l.Expected)}}
	switch {
	case l.App != "":
		out.Time.Kind = "app " + l.App
	case l.User != "":
		out.Time.Kind = "user " + l.User
	}
	if l.Run > 0 {
		if l.Limit > 0 {
			out.Work = min(out.Work, out.Time.Limit)
		}
		return out
	}
	out.Work, out.Exponent, out.Speed = seconds(l.Work), l.Exp, l.Speed[:l.Max]
	if !rigid {
		out.Min, out.Max = 1, l.Max
	}
	return out
}
