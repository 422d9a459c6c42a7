package rendezvous

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxStrangers bounds the connections on which no agent has been identified yet, as they are being opened. Further
// connections wait in the queue of the kernel.
const maxStrangers = 512

// connections is a listener that bounds its connections: few on which no agent has been identified yet, whoever opened
// them, and many of identified agents, one for each pod.
type connections struct {
	net.Listener
	// strangers has an element for each connection on which no agent has been identified.
	strangers chan struct{}
	closed    chan struct{}
	close     sync.Once

	mu     sync.Mutex
	agents map[types.UID]*connection
	most   int
}

func newConnections(listener net.Listener, strangers, agents int) *connections {
	return &connections{
		Listener: listener, strangers: make(chan struct{}, strangers), closed: make(chan struct{}),
		agents: map[types.UID]*connection{}, most: agents,
	}
}

// Accept waits until there is room for another connection.
func (c *connections) Accept() (net.Conn, error) {
	select {
	case c.strangers <- struct{}{}:
	case <-c.closed:
		return nil, net.ErrClosed
	}
	accepted, err := c.Listener.Accept()
	if err != nil {
		<-c.strangers
		return nil, err
	}
	return &connection{Conn: accepted, of: c, stranger: true}, nil
}

func (c *connections) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Listener.Close()
}

// connection is an open connection. It counts among the strangers, and then, for its pod, among the agents.
type connection struct {
	net.Conn
	of *connections

	// The fields below require of.mu.
	stranger, closed bool
	pod              types.UID
}

// errOtherPod is returned to a request of another pod than the earlier ones of its connection.
var errOtherPod = fmt.Errorf("%w: an earlier request of the connection was that of another pod", errInvalid)

// identified records that the agent of the pod has been identified on the connection, which replaces the pod's earlier
// one: it is lost, or the agent is another one.
func (c *connection) identified(pod types.UID) error {
	earlier, err := c.of.identified(c, pod)
	if earlier != nil {
		earlier.Close()
	}
	return err
}

func (c *connections) identified(by *connection, pod types.UID) (earlier *connection, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earlier = c.agents[pod]
	switch {
	case by.closed, by.pod == pod:
		return nil, nil
	case by.pod != "":
		return nil, errOtherPod
	case earlier == nil && len(c.agents) >= c.most:
		return nil, errFull
	}
	by.pod, by.stranger = pod, false
	c.agents[pod] = by
	<-c.strangers
	return earlier, nil
}

func (c *connection) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

func (c *connections) forget(closed *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if closed.stranger {
		<-c.strangers
	}
	if c.agents[closed.pod] == closed {
		delete(c.agents, closed.pod)
	}
	closed.stranger, closed.closed = false, true
}

// connectionKey is the key of the connection in the context of its requests.
type connectionKey struct{}

// withConnection adds the connection to the context of its requests.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secured, is := c.(*tls.Conn); is {
		c = secured.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// identified records that the agent of the pod has been identified on the connection of the request.
func identified(request context.Context, pod types.UID) error {
	if c, is := request.Value(connectionKey{}).(*connection); is {
		return c.identified(pod)
	}
	return nil
}

// Bounds of the pods whose requests are held, and of their connections.
const (
	// maxAgents is for several jobs of 10,000 pods.
	maxAgents = 30_000
	// minAgents are served even if the memory is limited to less than the chart allows.
	minAgents = 1000
	// bytesPerAgent is what an idle connection and its held request take, mostly in stacks of goroutines.
	bytesPerAgent = 52 << 10
)

// agentsWithin returns how many agents take half of the memory; 0 is for no limit.
func agentsWithin(bytes int64) int {
	if bytes == 0 {
		return maxAgents
	}
	return int(min(max(bytes/2/bytesPerAgent, minAgents), maxAgents))
}

// MemoryLimit returns the limit on the memory of the operator's container; 0 if there is none.
func MemoryLimit() int64 {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return 0 // the cgroup at the root has no file of this name
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return bytes
}
