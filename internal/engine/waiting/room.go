package waiting

// Room is the place where classes wait: it holds the blocked classes of all families, and the times for which others
// wait. Create one with NewRoom. It is not safe for concurrent use.
type Room struct {
	Timers
	// byFlavor are the blocked classes for which the nodes of a flavor lacked capacity.
	byFlavor map[string]map[*Class]struct{}
	rounds   rounds
}

// NewRoom returns a room without classes.
func NewRoom() *Room { return &Room{byFlavor: map[string]map[*Class]struct{}{}} }

// NodesFreed publishes that nodes of the flavor may have more capacity.
func (r *Room) NodesFreed(flavor string) {
	for _, c := range byHead(r.byFlavor[flavor]) {
		if c.blocked {
			c.Reevaluate()
		}
	}
}

// NodesReduced publishes that nodes of the flavor have less capacity for whatever comes.
func (r *Room) NodesReduced(flavor string) {
	for _, c := range byHead(r.byFlavor[flavor]) {
		if c.blocked && c.queue.FewerNodes {
			c.Reevaluate()
		}
	}
}
