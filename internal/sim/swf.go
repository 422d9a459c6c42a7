package sim

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
)

// The columns of a line of a log in the Standard Workload Format that count, from 0.
const (
	swfSubmitted  = 1
	swfRan        = 3
	swfProcessors = 4
	swfRequested  = 8
	swfUser       = 11
	swfColumns    = 18
)

// Bounds of what a log may say, so that no log exhausts memory or overflows.
const (
	mostJobs      = 1_000_000
	mostSeconds   = 10 * 365 * 24 * 3600
	mostReplicas  = 1_000_000
	mostLineBytes = 1 << 20
)

// ReadSWF reads the jobs of a log in the Standard Workload Format, of one replica for each processor. The log begins at
// its first job. Jobs without run time or processors are left out; a job is stopped at the time that its user
// requested. A last line that is cut off is left out too. Lines may be in any order of time after the first. An error
// names the line.
func ReadSWF(log io.Reader) (jobs []Job, err error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, mostLineBytes)
	first, number, cut := int64(-1), 0, 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, ";") {
			continue
		}
		if cut > 0 {
			return nil, fmt.Errorf("line %d has fewer than the %d columns of the Standard Workload Format", cut, swfColumns)
		}
		columns := strings.Fields(text)
		if len(columns) < swfColumns {
			cut = number
			continue
		}
		job, submitted, err := swfJob(columns, len(jobs))
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", number, err)
		case job.Max <= 0 || job.Work <= 0:
			continue
		case first < 0:
			first = submitted
		}
		if submitted < first {
			return nil, fmt.Errorf("line %d: the job is submitted at %d s, before the first job of the log at %d s", number,
				submitted, first)
		}
		if len(jobs) == mostJobs {
			return nil, fmt.Errorf("line %d: the log has more than %d jobs", number, mostJobs)
		}
		job.Arrives = time.Duration(submitted-first) * time.Second
		jobs = append(jobs, job)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return jobs, nil
}

// swfJob returns the job of a line, and when it was submitted.
func swfJob(columns []string, index int) (job Job, submitted int64, err error) {
	var values [swfColumns]int64
	for _, c := range []struct {
		at          int
		what        string
		least, most float64
	}{
		// The log says -1 for what is not known.
		{swfSubmitted, "submit time", 0, 10 * mostSeconds}, {swfRan, "run time", -1, mostSeconds},
		{swfProcessors, "number of processors", -1, mostReplicas}, {swfRequested, "requested time", -1, mostSeconds},
	} {
		// Some logs have fractions of seconds.
		value, err := strconv.ParseFloat(columns[c.at], 64)
		if err != nil || value != value || value < c.least || value > c.most {
			return Job{}, 0, fmt.Errorf("column %d, the %s, must be a number from %.0f to %.0f: %.40q", c.at+1, c.what, c.least,
				c.most, columns[c.at])
		}
		values[c.at] = int64(value)
	}
	ran, limit, user := values[swfRan], values[swfRequested], columns[swfUser]
	if len(user) > mostUserBytes {
		return Job{}, 0, fmt.Errorf("column %d, the user, is longer than %d characters", swfUser+1, mostUserBytes)
	}
	user = strings.Clone(user) // it is part of the line
	job = Job{Name: name(index), Min: int32(values[swfProcessors]), Max: int32(values[swfProcessors]), User: user,
		Work: time.Duration(ran) * time.Second, Time: durations.Known{Kind: "user " + user}}
	if limit > 0 {
		job.Time.Limit = time.Duration(limit) * time.Second
		job.Work = min(job.Work, job.Time.Limit)
	}
	return job, values[swfSubmitted], nil
}

// mostUserBytes bounds the name of a user.
const mostUserBytes = 256
