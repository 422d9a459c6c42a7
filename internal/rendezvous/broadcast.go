package rendezvous

import "sync"

// broadcast notifies any number of listeners of a change.
type broadcast struct {
	mu      sync.Mutex
	channel chan struct{}
}

// changed returns a channel that the next notify closes.
func (n *broadcast) changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channel == nil {
		n.channel = make(chan struct{})
	}
	return n.channel
}

func (n *broadcast) notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channel != nil {
		close(n.channel)
		n.channel = nil
	}
}
