package admission

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
)

// mailbox holds messages until the loop takes them. put never blocks, so that watches do not wait for decisions.
type mailbox struct {
	mu       sync.Mutex
	messages []message
	wake     chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) put(n message) {
	m.mu.Lock()
	m.messages = append(m.messages, n)
	m.mu.Unlock()
	m.wakeUp()
}

// len returns the number of waiting items.
func (m *mailbox) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.messages)
}

// wakeUp makes the loop take a turn.
func (m *mailbox) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

func (m *mailbox) take() []message {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.messages
	m.messages = nil
	return taken
}

// message is one change: an object that was added or updated, one that was deleted, or an event from the writer of
// decisions about the outcome of one.
type message struct {
	changed, deleted client.Object
	event            engine.Event
}

// objectsOf returns the objects that were added or updated, in order.
func objectsOf(messages []message) []client.Object {
	var out []client.Object
	for i := range messages {
		if object := messages[i].changed; object != nil {
			out = append(out, object)
		}
	}
	return out
}

// engineEvents translates the message into engine events.
func (m message) engineEvents(t *translate.Translator, now time.Time) []engine.Event {
	switch {
	case m.changed != nil:
		return t.Changed(m.changed, now)
	case m.deleted != nil:
		return t.Deleted(m.deleted)
	default:
		return []engine.Event{m.event}
	}
}
