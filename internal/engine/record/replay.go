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

// Replay applies the events of the log to an engine for each run, and compares its decisions with the recorded ones.
// It stops at the first difference. An incomplete last line is ignored.
func Replay(log io.Reader) (Result, error) {
	r := replay{lines: bufio.NewReader(log)}
	for r.result.Difference == nil {
		what, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.result, r.broken
		}
		if err == nil {
			err = r.take(what)
		}
		if err != nil {
			return r.result, fmt.Errorf("line %d of the decision log: %w", r.number, err)
		}
	}
	return r.result, nil
}

type replay struct {
	lines  *bufio.Reader
	number int
	result Result
	engine *engine.Engine
	// broken is the error of a line that could not be read. It is ignored if that is the last line of a run, whose
	// writer was killed.
	broken error
}

// next returns the next line that is not empty.
func (r *replay) next() (what line, err error) {
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

func (r *replay) take(what line) error {
	switch {
	case what.Begin != nil:
		if what.Begin.Format != format {
			return fmt.Errorf("it has format %d, and this program replays format %d: use the version that wrote it", what.Begin.Format, format)
		}
		r.engine, r.broken = engine.New(what.Begin.Options), nil
		r.result.Runs++
		return nil
	case r.broken != nil:
		return r.broken
	case r.engine == nil:
		return errors.New("it does not begin with the options of an engine")
	case what.Event != "":
		ev, err := eventOf(what)
		if err != nil {
			return err
		}
		r.engine.Apply(ev)
		return nil
	case what.Pass != nil:
		return r.decide(*what.Pass, what.Decisions)
	case what.Check != nil:
		r.check(*what.Check, what.Missed)
		return nil
	case what.Cut != "":
		r.result.Cut = what.Cut
		return nil
	}
	return errors.New("it is neither an event, nor a pass, nor a check")
}

// check compares a check of waiting workloads with the recorded one.
func (r *replay) check(at time.Time, recorded []engine.Key) {
	if missed, _ := r.engine.CheckWaiting(at); !slices.Equal(recorded, missed) {
		r.result.Difference = &Difference{Line: r.number, At: at, Recorded: fmt.Sprint(recorded), Replayed: fmt.Sprint(missed)}
	}
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
func (r *replay) decide(at time.Time, recorded []byte) error {
	decisions := r.engine.Decide(at)
	r.result.Passes++
	r.result.Decisions += len(decisions)
	replayed, err := json.Marshal(decisions)
	if err != nil {
		return fmt.Errorf("writing the decisions of the replay: %w", err)
	}
	if bytes.Equal(recorded, replayed) {
		return nil
	}
	var before, after []json.RawMessage
	for text, list := range map[*[]json.RawMessage][]byte{&before: recorded, &after: replayed} {
		if err := json.Unmarshal(list, text); err != nil {
			return fmt.Errorf("reading decisions: %w", err)
		}
	}
	index := 0
	for index < len(before) && index < len(after) && bytes.Equal(before[index], after[index]) {
		index++
	}
	r.result.Difference = &Difference{Line: r.number, At: at, Index: index, Recorded: textAt(before, index), Replayed: textAt(after, index)}
	return nil
}

func textAt(list []json.RawMessage, index int) string {
	if index < len(list) {
		return string(list[index])
	}
	return ""
}
