package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quotaBytes bounds the database: enough for some hundred thousand objects.
const quotaBytes = 8 << 30

// etcdServer is a single-member etcd that serves only this process, over a socket in its own directory; it has no port.
type etcdServer struct {
	server   *embed.Etcd
	endpoint string
	folder   *os.File
	stopping chan struct{}
}

// startEtcd returns when the database can be read and written.
func startEtcd(ctx context.Context, dir string, durable bool, logs *logs) (*etcdServer, error) {
	// The path of a socket is limited to 107 bytes, which a state directory may exceed. Through the file descriptor of
	// its folder the path is always short.
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of etcd: %w", err)
	}
	socket := url.URL{Scheme: "unix", Path: filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), "etcd.sock")}
	e := &etcdServer{endpoint: socket.String(), folder: folder, stopping: make(chan struct{})}

	c := embed.NewConfig()
	c.Name = "local"
	c.Dir = filepath.Join(dir, "data")
	c.ListenClientUrls = []url.URL{socket}
	c.AdvertiseClientUrls = []url.URL{socket}
	// Never listened on: a single member has no peers. It is part of the
	// member's identity, so it must stay the same from start to start.
	c.ListenPeerUrls = nil
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	// A lone member waits an election timeout before it elects itself.
	c.TickMs, c.ElectionMs = 20, 100
	c.UnsafeNoFsync = !durable
	c.QuotaBackendBytes = quotaBytes
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(
		zapcore.NewJSONEncoder(logutil.DefaultZapLoggerConfig.EncoderConfig), logs.etcd.file, zap.InfoLevel)))

	if e.server, err = embed.StartEtcd(c); err != nil {
		folder.Close()
		return nil, fmt.Errorf("starting etcd: %w; its log is %s", err, logs.etcd.path)
	}
	select {
	case <-e.server.Server.ReadyNotify():
		return e, nil
	case err := <-e.server.Err():
		e.stop()
		return nil, fmt.Errorf("starting etcd: %w; its log is %s", err, logs.etcd.path)
	case <-ctx.Done():
		e.stop()
		return nil, context.Cause(ctx)
	}
}

// awaitDeath blocks until etcd has ended, and returns nil if it was stopped.
func (e *etcdServer) awaitDeath() error {
	select {
	case err := <-e.server.Err():
		return e.deathUnlessStopping(err)
	case <-e.server.Server.StopNotify():
		return e.deathUnlessStopping(nil)
	case <-e.stopping:
		return nil
	}
}

func (e *etcdServer) deathUnlessStopping(err error) error {
	select {
	case <-e.stopping:
		return nil
	default:
	}
	if err == nil {
		err = errors.New("its server stopped")
	}
	return err
}

func (e *etcdServer) stop() {
	close(e.stopping)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.server.Close()
	}()
	select {
	case <-closed:
		e.folder.Close()
	case <-time.After(stopTimeout):
	}
}
