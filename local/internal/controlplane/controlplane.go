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
func (p *ControlPlane) RunControllers(ctx context.Context) error {
	if err := p.await(ctx, p.api.awaitReady); err != nil {
		return err
	}
	scheduler, err := newScheduler(ctx, p.credentials.schedulerKubeconfig, p.logs.scheduler)
	if err != nil {
		return p.firstCause(err)
	}
	manager, err := newControllerManager(ctx, p.credentials, p.logs.controllerManager)
	if err != nil {
		return p.firstCause(err)
	}
	p.run("kube-scheduler", p.logs.scheduler, scheduler.run)
	p.run("kube-controller-manager", p.logs.controllerManager, manager.run)
	if err := p.await(ctx, scheduler.awaitReady); err != nil {
		return err
	}
	if err := p.await(ctx, func(ctx context.Context) error {
		return awaitPodsCreatable(ctx, p.credentials.admin)
	}); err != nil {
		return err
	}
	p.step("kube-scheduler and kube-controller-manager run")
	return nil
}

// AwaitRoles returns when the default roles exist, without which users outside the group system:masters may not even
// use discovery.
func (p *ControlPlane) AwaitRoles(ctx context.Context) error { return p.await(ctx, p.api.awaitReady) }

// Admin returns a client configuration of a user with all rights.
func (p *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(p.credentials.admin) }

// Died returns a channel that receives an error naming the component if one ends by itself.
func (p *ControlPlane) Died() <-chan error { return p.died }

// Stop stops the components, the last started first, each within a bounded time.
func (p *ControlPlane) Stop() {
	p.letAPIServerStart()
	for i := len(p.components) - 1; i >= 0; i-- {
		p.components[i].stop()
	}
	if p.etcd != nil {
		p.etcd.stop()
	}
	if p.logs != nil {
		p.logs.close()
	}
}

// letAPIServerStart waits, for a bounded time, until an API server that is starting
// has started: its hooks end the process if they are interrupted.
func (p *ControlPlane) letAPIServerStart() {
	if p.api == nil || len(p.components) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	go func() {
		<-p.components[0].ended // the API server has ended: nothing to wait for
		cancel()
	}()
	_ = p.api.awaitReady(ctx) // whether it became ready or not, it is stopped now
}

// await runs a step of the start, and cancels it if a component dies meanwhile.
func (p *ControlPlane) await(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	select {
	case err := <-done:
		return err
	case err := <-p.died:
		cancel(err)
		<-done
		return err
	}
}

// firstCause returns the death of a component, if there is one, rather than the error that it caused elsewhere.
func (p *ControlPlane) firstCause(err error) error {
	select {
	case death := <-p.died:
		return death
	default:
		return err
	}
}

func (p *ControlPlane) watchEtcd() {
	go func() {
		if err := p.etcd.awaitDeath(); err != nil {
			p.died <- fmt.Errorf("etcd ended: %w; its log is %s", err, p.logs.etcd.path)
		}
	}()
}
