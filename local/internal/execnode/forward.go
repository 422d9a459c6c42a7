package execnode

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout bounds connecting on this machine.
const dialTimeout = 10 * time.Second

// forward connects each client of the listener to what dial reaches, until the listener is closed.
func forward(listener net.Listener, dial func(context.Context) (net.Conn, error)) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
			defer cancel()
			target, err := dial(ctx)
			if err != nil {
				return
			}
			defer target.Close()
			join(client, target)
		}()
	}
}

// join copies in both directions between two connections, and propagates that one side has closed its writing end.
func join(a, b io.ReadWriteCloser) {
	var both sync.WaitGroup
	pass := func(to, from io.ReadWriteCloser) {
		io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		} else {
			to.Close()
		}
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
}
