package podnet

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// holdVariable is the environment variable that makes the test binary hold a fabric until it is killed.
const holdVariable = "PODNET_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		fabric, err := Open()
		if err == nil {
			_, err = fabric.Join()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(fabric.Interface())
		select {}
	}
	os.Exit(m.Run())
}

func openFabric(t testing.TB) *Fabric {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	fabric, err := Open()
	if err != nil {
		t.Skipf("this machine does not allow networks: %v", err)
	}
	t.Cleanup(func() {
		if err := fabric.Close(); err != nil {
			t.Error(err)
		}
	})
	return fabric
}

func join(t testing.TB, fabric *Fabric) *Pod {
	t.Helper()
	pod, err := fabric.Join()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pod.Close() })
	return pod
}

func TestPodsListenOnTheSamePortAndReachEachOther(t *testing.T) {
	fabric := openFabric(t)
	pods := []*Pod{join(t, fabric), join(t, fabric), join(t, fabric)}
	const port = 3389
	for i, pod := range pods {
		var listener net.Listener
		err := inside(pod.namespace, func() (err error) {
			listener, err = net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		go greet(listener, fmt.Sprintf("pod %d", i))
	}
	for from, caller := range pods {
		for to, called := range pods {
			conn, err := caller.Dial(t.Context(), netip.AddrPortFrom(called.Address(), port))
			if err != nil {
				t.Fatalf("pod %d cannot reach pod %d: %v", from, to, err)
			}
			if got := read(t, conn); got != fmt.Sprintf("pod %d", to) {
				t.Errorf("pod %d read %[3]q at pod %[2]d's address", from, to, got)
			}
		}
	}
	conn, err := net.DialTimeout("tcp4", netip.AddrPortFrom(pods[1].Address(), port).String(), time.Minute)
	if err != nil {
		t.Fatalf("the machine cannot reach a pod: %v", err)
	}
	if got := read(t, conn); got != "pod 1" {
		t.Errorf("the machine read %q at pod 1's address", got)
	}
}

func greet(listener net.Listener, text string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(conn, text)
		conn.Close()
	}
}

func read(t *testing.T, conn net.Conn) string {
	t.Helper()
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestPodReachesTheMachineAndAProxyOnItsOwnLoopback(t *testing.T) {
	fabric := openFabric(t)
	pod := join(t, fabric)
	host, release, err := fabric.HostAddress()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	onMachine, err := net.Listen("tcp4", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer onMachine.Close()
	go greet(onMachine, "machine")
	conn, err := pod.Dial(t.Context(), onMachine.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, conn); got != "machine" {
		t.Errorf("read %q, want machine", got)
	}
	service := netip.MustParseAddrPort("10.96.0.1:443")
	inPod, err := pod.Listen(service)
	if err != nil {
		t.Fatal(err)
	}
	go greet(inPod, "service")
	if conn, err = pod.Dial(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	if got := read(t, conn); got != "service" {
		t.Errorf("read %q, want service", got)
	}
}

func TestNothingIsLeftWhenTheProcessIsKilled(t *testing.T) {
	openFabric(t)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"=1")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	name := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(name, "muster") {
		t.Fatalf("starting a second fabric: %q, %v", name, err)
	}
	if _, err := net.InterfaceByName(name); err != nil {
		t.Fatalf("the interface of the other process: %v", err)
	}
	changes, done := make(chan netlink.LinkUpdate), make(chan struct{})
	defer close(done)
	if err := netlink.LinkSubscribe(changes, done); err != nil {
		t.Fatal(err)
	}
	holder.Process.Kill()
	holder.Wait()
	patience := time.After(2 * time.Minute)
	for {
		select {
		case change := <-changes:
			if change.Header.Type == syscall.RTM_DELLINK && change.Attrs().Name == name {
				return
			}
		case <-patience:
			t.Fatalf("interface %s is left after its process was killed", name)
		}
	}
}

func TestTheMachineIsLockedByOneProcessAtATime(t *testing.T) {
	unlock, err := lockMachine()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		unlock, err := lockMachine()
		if err == nil {
			unlock()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("the second lock did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	if err := <-second; err != nil {
		t.Errorf("the second lock failed: %v", err)
	}
}

func BenchmarkJoin(b *testing.B) {
	fabric := openFabric(b)
	for b.Loop() {
		pod, err := fabric.Join()
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		pod.Close()
		b.StartTimer()
	}
}
