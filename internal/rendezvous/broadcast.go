package rendezvous

import "sync"

// broadcast notifies any number of listeners of a change.
type broadcast struct {
	mu      sync.Mutex
	channel chan struct{}
}

// changed returns a channel that the next notify closes.
func (b *broadcast) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.channel == nil {
		b.channel = make(chan struct{})
	}
	return b.channel
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.channel != nil {
		close(b.channel)
		b.channel = nil
	}
}
