package rendezvous

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is one agent's connection to the operator, which tests can close and open again.
type proxy struct {
	t           *testing.T
	address, to string
	mu          sync.Mutex
	listener    net.Listener
	connections []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	w := &proxy{t: t, address: "127.0.0.1:0", to: to}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (p *proxy) open() {
	p.t.Helper()
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.address, p.listener = listener.Addr().String(), listener
	p.mu.Unlock()
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			if out, err := net.Dial("tcp", p.to); err == nil {
				p.forward(listener, in, out)
			} else {
				in.Close()
			}
		}
	}()
}

// forward copies data both ways, if the listener is still the proxy's.
func (p *proxy) forward(listener net.Listener, in, out net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		in.Close()
		out.Close()
		return
	}
	p.connections = append(p.connections, in, out)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			pair[0].Close()
		}()
	}
}

// close closes the listener and all connections.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		p.listener.Close()
	}
	for _, c := range p.connections {
		c.Close()
	}
	p.listener, p.connections = nil, nil
}
