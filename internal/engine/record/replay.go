package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine"
)

// Result is the result of a replay.
type Result struct {
	// Runs is the number of runs in the log, Passes and Decisions are their totals.
	Runs, Passes, Decisions int
	// Missed are the workloads that checks found to wait although they could have been admitted.
	Missed []engine.Key
	// Kept is how many promised starts were kept, and Late how many were delayed, by cause.
	Kept int
	Late map[engine.LateCause]int
	// Cut says why a run was not written to its end, if any was not.
	Cut string
	// Difference is the first difference; nil if all decisions are the same.
	Difference *Difference
}

// Difference is a pass whose replay decided differently.
type Difference struct {
	// Line is the line of the pass in the log, from 1; At is its time.
	Line int
	At   time.Time
	// Index is the index of the decision within the pass, from 0. Recorded and Replayed are the decision as JSON,
	// empty if there was none.
	Index              int
	Recorded, Replayed string
}

// Step is one line of a log: the beginning of a run, an event, a pass, a check of waiting workloads, or that the rest
// of a run was not written. Exactly one of Begin, Event, Pass, Check and Cut is set.
type Step struct {
	// Line is its line in the log, from 1.
	Line  int
	Begin *engine.Options
	Event engine.Event
	// Pass is the time of a pass, Decisions its result as JSON.
	Pass      *time.Time
	Decisions json.RawMessage
	// Check is the time of a check, Missed the workloads that it found.
	Check  *time.Time
	Missed []engine.Key
	// Cut says why the rest of the run was not written.
	Cut string
}

// Read calls take for each step of the log, in order, and ends with the first error that take returns. An incomplete
// last line of a run is ignored.
func Read(log io.Reader, take func(Step) error) error {
	r := reader{lines: bufio.NewReader(log)}
	for {
		what, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.broken
		}
		if err == nil {
			err = r.take(what, take)
		}
		if err != nil {
			return fmt.Errorf("line %d of the decision log: %w", r.number, err)
		}
	}
}

// Replay applies the events of the log to an engine for each run, and compares its decisions with the recorded ones.
// It stops at the first difference.
func Replay(log io.Reader) (Result, error) {
	var r replay
	err := Read(log, r.take)
	r.countPromises()
	if errors.Is(err, errDiffers) {
		err = nil
	}
	return r.result, err
}

// errDiffers ends a replay at the first difference.
var errDiffers = errors.New("a decision differs")

type replay struct {
	result Result
	engine *engine.Engine
}

func (r *replay) take(what Step) error {
	switch {
	case what.Begin != nil:
		r.countPromises()
		r.engine = engine.New(*what.Begin)
		r.result.Runs++
	case what.Event != nil:
		r.engine.Apply(what.Event)
	case what.Pass != nil:
		return r.decide(what)
	case what.Check != nil:
		return r.check(what)
	default:
		r.result.Cut = what.Cut
	}
	return nil
}

// countPromises adds the promised starts of the run that has ended, if there is one.
func (r *replay) countPromises() {
	if r.engine == nil {
		return
	}
	r.result.Kept += r.engine.PromisesKept()
	for cause, late := range r.engine.PromisesLate() {
		if r.result.Late == nil {
			r.result.Late = map[engine.LateCause]int{}
		}
		r.result.Late[cause] += late
	}
}

// reader reads the lines of a log.
type reader struct {
	lines  *bufio.Reader
	number int
	// begun says that a run has begun.
	begun bool
	// broken is the error of a line that could not be read. It is ignored if that is the last line of a run, whose
	// writer was killed.
	broken error
}

// next returns the next line that is not empty.
func (r *reader) next() (what line, err error) {
	for {
		text, err := r.lines.ReadBytes('\n')
		whole := err == nil
		if len(text) == 0 && !whole {
			return line{}, err
		}
		r.number++
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			continue
		}
		what = line{}
		if err := json.Unmarshal(text, &what); err != nil {
			if !whole {
				return line{}, io.EOF
			}
			if r.broken == nil {
				r.broken = fmt.Errorf("line %d of the decision log: %w", r.number, err)
			}
			continue
		}
		return what, nil
	}
}

// take passes the step of a line on.
func (r *reader) take(what line, take func(Step) error) error {
	switch {
	case what.Begin != nil:
		if what.Begin.Format != format {
			return fmt.Errorf("it has format %d, and this program replays format %d: use the version that wrote it",
				what.Begin.Format, format)
		}
		r.begun, r.broken = true, nil
		return take(Step{Line: r.number, Begin: &what.Begin.Options})
	case r.broken != nil:
		return r.broken
	case !r.begun:
		return errors.New("it does not begin with the options of an engine")
	case what.Event != "":
		ev, err := eventOf(what)
		if err != nil {
			return err
		}
		return take(Step{Line: r.number, Event: ev})
	case what.Pass != nil:
		return take(Step{Line: r.number, Pass: what.Pass, Decisions: what.Decisions})
	case what.Check != nil:
		return take(Step{Line: r.number, Check: what.Check, Missed: what.Missed})
	case what.Cut != "":
		return take(Step{Line: r.number, Cut: what.Cut})
	}
	return errors.New("it is neither an event, nor a pass, nor a check")
}

// check compares a check of waiting workloads with the recorded one.
func (r *replay) check(what Step) error {
	missed, _ := r.engine.CheckWaiting(*what.Check)
	r.result.Missed = append(r.result.Missed, missed...)
	if slices.Equal(what.Missed, missed) {
		return nil
	}
	r.result.Difference = &Difference{Line: what.Line, At: *what.Check,
		Recorded: fmt.Sprint(what.Missed), Replayed: fmt.Sprint(missed)}
	return errDiffers
}

func eventOf(what line) (engine.Event, error) {
	kind, ok := kinds[what.Event]
	if !ok {
		return nil, fmt.Errorf("there is no event %q", what.Event)
	}
	ev := reflect.New(kind)
	if err := json.Unmarshal(what.Is, ev.Interface()); err != nil {
		return nil, fmt.Errorf("reading a %s: %w", what.Event, err)
	}
	return ev.Elem().Interface().(engine.Event), nil
}

// decide compares a pass with the recorded one.
func (r *replay) decide(pass Step) error {
	decisions := r.engine.Decide(*pass.Pass)
	r.result.Passes++
	r.result.Decisions += len(decisions)
	replayed, err := json.Marshal(decisions)
	if err != nil {
		return fmt.Errorf("writing the decisions of the replay: %w", err)
	}
	if bytes.Equal(pass.Decisions, replayed) {
		return nil
	}
	var before, after []json.RawMessage
	for text, list := range map[*[]json.RawMessage][]byte{&before: pass.Decisions, &after: replayed} {
		if err := json.Unmarshal(list, text); err != nil {
			return fmt.Errorf("reading decisions: %w", err)
		}
	}
	index := 0
	for index < len(before) && index < len(after) && bytes.Equal(before[index], after[index]) {
		index++
	}
	r.result.Difference = &Difference{Line: pass.Line, At: *pass.Pass, Index: index,
		Recorded: textAt(before, index), Replayed: textAt(after, index)}
	return errDiffers
}

func textAt(list []json.RawMessage, index int) string {
	if index < len(list) {
		return string(list[index])
	}
	return ""
}
