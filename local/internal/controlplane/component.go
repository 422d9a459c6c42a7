package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// stopTimeout is how long one component may take to stop. A component that has not ended by then ends with the
// process.
const stopTimeout = 8 * time.Second

// component is a library's Run function on a goroutine of its own.
type component struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// run starts a component that runs until it is stopped; if it returns earlier, it has died.
func (cp *ControlPlane) run(name string, log *logFile, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), log.logger))
	c := &component{cancel: cancel, ended: make(chan struct{})}
	cp.components = append(cp.components, c)
	go func() {
		defer close(c.ended)
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it returned without an error")
		}
		cp.died <- fmt.Errorf("%s ended: %w; its log is %s", name, err, log.path)
	}()
}

func (c *component) stop() {
	c.cancel()
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
	}
}
