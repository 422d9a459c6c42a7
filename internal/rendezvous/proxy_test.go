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

func (w *proxy) open() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	w.address, w.listener = listener.Addr().String(), listener
	w.mu.Unlock()
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			if out, err := net.Dial("tcp", w.to); err == nil {
				w.forward(listener, in, out)
			} else {
				in.Close()
			}
		}
	}()
}

// forward copies data both ways, if the listener is still the proxy's.
func (w *proxy) forward(listener net.Listener, in, out net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != listener {
		in.Close()
		out.Close()
		return
	}
	w.connections = append(w.connections, in, out)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			pair[0].Close()
		}()
	}
}

// close closes the listener and all connections.
func (w *proxy) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		w.listener.Close()
	}
	for _, c := range w.connections {
		c.Close()
	}
	w.listener, w.connections = nil, nil
}
