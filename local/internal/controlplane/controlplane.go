package controlplane

import (
	"context"
	"fmt"
	"net"

	"k8s.io/client-go/rest"
)

// Config configures a control plane.
type Config struct {
	// Listener is where the API serves; on loopback. Start takes it over.
	Listener net.Listener
	// EtcdDir, PKIDir and LogsDir must exist and be used by this control plane only.
	EtcdDir, PKIDir, LogsDir string
	// Durable makes etcd sync every write to disk.
	Durable bool
	// Verbosity is klog's -v.
	Verbosity int
	// Step reports, in the past tense, a step that is done.
	Step func(format string, args ...any)
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	credentials *credentials
	logs        *logs
	step        func(format string, args ...any)
	etcd        *etcdServer
	api         *apiServer
	// components in the order in which they were started.
	components []*component
	died       chan error
}

// Start runs etcd and kube-apiserver, and returns when the API serves users in the group system:masters; default roles
// of others may still be missing. On an error, or if ctx ends before, nothing is left running. ctx bounds only the
// start; Stop stops what was started.
func Start(ctx context.Context, c Config) (_ *ControlPlane, err error) {
	p := &ControlPlane{step: c.Step, died: make(chan error, 4)}
	defer func() {
		if err != nil {
			p.Stop()
			// Not before: the API server panics if its listener is closed under it.
			c.Listener.Close()
		}
	}()
	if p.logs, err = openLogs(c.LogsDir, c.Verbosity); err != nil {
		return nil, err
	}
	if p.credentials, err = issueCredentials(c.PKIDir, c.Listener.Addr().String()); err != nil {
		return nil, err
	}
	if p.etcd, err = startEtcd(ctx, c.EtcdDir, c.Durable, p.logs); err != nil {
		return nil, err
	}
	p.watchEtcd()
	p.step("etcd serves")

	if p.api, err = newAPIServer(ctx, c.Listener, p.etcd.endpoint, p.credentials); err != nil {
		return nil, p.firstCause(err)
	}
	p.run("kube-apiserver", p.logs.apiserver, p.api.run)
	if err := p.await(ctx, p.api.awaitServing); err != nil {
		return nil, err
	}
	p.step("kube-apiserver serves https://%s", c.Listener.Addr())
	return p, nil
}

// RunControllers runs kube-scheduler and kube-controller-manager once the roles that they need exist, and returns when
// pods can be created and scheduled in namespace default. ctx bounds only the start.
func (cp *ControlPlane) RunControllers(ctx context.Context) error {
	if err := cp.await(ctx, cp.api.awaitReady); err != nil {
		return err
	}
	scheduler, err := newScheduler(ctx, cp.credentials.schedulerKubeconfig, cp.logs.scheduler)
	if err != nil {
		return cp.firstCause(err)
	}
	manager, err := newControllerManager(ctx, cp.credentials, cp.logs.controllerManager)
	if err != nil {
		return cp.firstCause(err)
	}
	cp.run("kube-scheduler", cp.logs.scheduler, scheduler.run)
	cp.run("kube-controller-manager", cp.logs.controllerManager, manager.run)
	if err := cp.await(ctx, scheduler.awaitReady); err != nil {
		return err
	}
	if err := cp.await(ctx, func(ctx context.Context) error {
		return awaitPodsCreatable(ctx, cp.credentials.admin)
	}); err != nil {
		return err
	}
	cp.step("kube-scheduler and kube-controller-manager run")
	return nil
}

// AwaitRoles returns when the default roles exist, without which users outside the group system:masters may not even
// use discovery.
func (cp *ControlPlane) AwaitRoles(ctx context.Context) error {
	return cp.await(ctx, cp.api.awaitReady)
}

// Admin returns a client configuration of a user with all rights.
func (cp *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(cp.credentials.admin) }

// Died returns a channel that receives an error naming the component if one ends by itself.
func (cp *ControlPlane) Died() <-chan error { return cp.died }

// Stop stops the components, the last started first, each within a bounded time.
func (cp *ControlPlane) Stop() {
	cp.letAPIServerStart()
	for i := len(cp.components) - 1; i >= 0; i-- {
		cp.components[i].stop()
	}
	if cp.etcd != nil {
		cp.etcd.stop()
	}
	if cp.logs != nil {
		cp.logs.close()
	}
}

// letAPIServerStart waits, for a bounded time, until an API server that is starting
// has started: its hooks end the process if they are interrupted.
func (cp *ControlPlane) letAPIServerStart() {
	if cp.api == nil || len(cp.components) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	go func() {
		<-cp.components[0].ended // the API server has ended: nothing to wait for
		cancel()
	}()
	_ = cp.api.awaitReady(ctx) // whether it became ready or not, it is stopped now
}

// await runs a step of the start, and cancels it if a component dies meanwhile.
func (cp *ControlPlane) await(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	select {
	case err := <-done:
		return err
	case err := <-cp.died:
		cancel(err)
		<-done
		return err
	}
}

// firstCause returns the death of a component, if there is one, rather than the error that it caused elsewhere.
func (cp *ControlPlane) firstCause(err error) error {
	select {
	case death := <-cp.died:
		return death
	default:
		return err
	}
}

func (cp *ControlPlane) watchEtcd() {
	go func() {
		if err := cp.etcd.awaitDeath(); err != nil {
			cp.died <- fmt.Errorf("etcd ended: %w; its log is %s", err, cp.logs.etcd.path)
		}
	}()
}
