package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestEtcdKeepsItsDataInADirectoryOfAnyPathLength(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 20))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := openLogs(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()

	first := mustStartEtcd(t, dir, l)
	if _, err := mustClient(t, first).Put(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}
	first.stop()
	if err := first.awaitDeath(); err != nil {
		t.Errorf("a stopped etcd is reported as dead: %v", err)
	}

	second := mustStartEtcd(t, dir, l)
	defer second.stop()
	got, err := mustClient(t, second).Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Errorf("the second start reads %v, want the stored value", got.Kvs)
	}
}

func TestTheDeathOfEtcdIsNoticed(t *testing.T) {
	l, err := openLogs(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	e := mustStartEtcd(t, t.TempDir(), l)
	defer e.stop()
	go e.server.Server.HardStop()
	if err := e.awaitDeath(); err == nil {
		t.Error("etcd ended by itself and is not reported as dead")
	}
}

func mustStartEtcd(t *testing.T, dir string, l *logs) *etcdServer {
	t.Helper()
	e, err := startEtcd(t.Context(), dir, false, l)
	if err != nil {
		t.Fatalf("%v: %s", err, readFile(t, l.etcd.path))
	}
	return e
}

func mustClient(t *testing.T, e *etcdServer) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
