package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/musterhq/muster/internal/engine"
)

// format is the version of the log format. It changes with the meaning of events, because a log must be replayed by
// the program version that wrote it.
const format = 4

// line is one line of a log; exactly one of Begin, Event, Pass, Check and Cut is set.
type line struct {
	// Begin starts a run.
	Begin *begin `json:"begin,omitempty"`
	// Event is the type of an event, Is the event.
	Event string          `json:"event,omitempty"`
	Is    json.RawMessage `json:"is,omitempty"`
	// Pass is the time of a pass, Decisions its result.
	Pass      *time.Time      `json:"pass,omitempty"`
	Decisions json.RawMessage `json:"decisions,omitempty"`
	// Check is the time of a check of waiting workloads, Missed those that should not have waited.
	Check  *time.Time   `json:"check,omitempty"`
	Missed []engine.Key `json:"missed,omitempty"`
	// Cut says why the rest of the run was not written.
	Cut string `json:"cut,omitempty"`
}

type begin struct {
	Format  int            `json:"format"`
	Options engine.Options `json:"options"`
}

// kinds has all event types by name.
var kinds = func() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, ev := range []engine.Event{
		engine.ClusterQueueSet{}, engine.ClusterQueueDeleted{}, engine.LocalQueueSet{}, engine.LocalQueueDeleted{},
		engine.CohortSet{}, engine.CohortDeleted{}, engine.FlavorSet{}, engine.FlavorDeleted{},
		engine.NamespaceSet{}, engine.NamespaceDeleted{}, engine.WorkloadSet{}, engine.WorkloadGone{},
		engine.NodeSet{}, engine.NodeDeleted{}, engine.TopologySet{}, engine.TopologyDeleted{},
		engine.PodBound{}, engine.PodEnded{}, engine.PodGone{}, engine.PodUnschedulable{}, engine.RunEnded{},
		engine.Written{}, engine.Refused{}, engine.Tried{}, engine.Failed{},
	} {
		kind := reflect.TypeOf(ev)
		out[kind.Name()] = kind
	}
	return out
}()

// Log writes one run. Each call writes whole lines in a single Write.
type Log struct {
	out io.Writer
}

// Begin starts the log of a new engine. It writes a newline first, as the preceding run in the same file may have
// ended within a line.
func Begin(out io.Writer, options engine.Options) (*Log, error) {
	l := &Log{out}
	if _, err := out.Write([]byte("\n")); err != nil {
		return nil, fmt.Errorf("beginning a decision log: %w", err)
	}
	return l, l.write(line{Begin: &begin{Format: format, Options: options}})
}

// Event records an event that the engine is about to apply.
func (l *Log) Event(ev engine.Event) error {
	is, err := json.Marshal(inUTC(ev))
	if err != nil {
		return fmt.Errorf("writing a %T into the decision log: %w", ev, err)
	}
	return l.write(line{Event: reflect.TypeOf(ev).Name(), Is: is})
}

// Pass records what Decide returned for that time.
func (l *Log) Pass(at time.Time, decisions []engine.Decision) error {
	at = at.UTC()
	made, err := json.Marshal(decisions)
	if err != nil {
		return fmt.Errorf("writing decisions into the decision log: %w", err)
	}
	return l.write(line{Pass: &at, Decisions: made})
}

// Check records what CheckWaiting returned for that time, if it checked.
func (l *Log) Check(at time.Time, missed []engine.Key) error {
	at = at.UTC()
	return l.write(line{Check: &at, Missed: missed})
}

// Cut records that the rest of the run is not written, and why. It ends the run.
func (l *Log) Cut(why string) error { return l.write(line{Cut: why}) }

func (l *Log) write(what line) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(what); err != nil {
		return fmt.Errorf("writing the decision log: %w", err)
	}
	_, err := l.out.Write(text.Bytes())
	return err
}

// inUTC returns the event with all its times in UTC. Times read from text may have different pointers for the same
// zone, and ranks that contain them would not compare as equal.
func inUTC(ev engine.Event) any {
	copied := reflect.New(reflect.TypeOf(ev)).Elem()
	copied.Set(reflect.ValueOf(ev))
	toUTC(copied)
	return copied.Interface()
}

func toUTC(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	if at, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(at.UTC()))
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			toUTC(v.Field(i))
		}
	}
}
