package operatorproc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// behaviour is the environment variable that makes this test binary act as an operator, and says how.
const behaviour = "OPERATORPROC_TEST_BEHAVIOUR"

func TestMain(m *testing.M) {
	switch os.Getenv(behaviour) {
	case "":
		os.Exit(m.Run())
	case "die":
		fmt.Println("cannot go on")
		os.Exit(3)
	case "refuse":
		fmt.Fprintf(os.Stderr, "muster-operator: wrong: %q\n", os.Args[1:])
		os.Exit(1)
	case "take":
		os.Exit(0)
	case "serve", "stubborn":
		actAsOperator()
	case "late": // its address is in use at the first start
		tried := os.Args[slices.Index(os.Args, "--kubeconfig")+1] + ".tried"
		if _, err := os.Stat(tried); err == nil {
			actAsOperator()
		}
		fmt.Println("listen tcp 127.0.0.1:1: bind: address already in use", os.WriteFile(tried, nil, 0o600))
		os.Exit(1)
	}
}

func actAsOperator() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	probes := os.Args[slices.Index(os.Args, "--health-probe-bind-address")+1]
	asked := 0
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 { // not ready at first, like a real operator
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	go http.ListenAndServe(probes, nil)
	<-terminated
	if os.Getenv(behaviour) == "stubborn" {
		select {}
	}
	fmt.Println("stopped in order")
	os.Exit(0)
}

func TestStartReturnsWhenTheOperatorIsReadyAndStopEndsIt(t *testing.T) {
	c := config(t, "serve")
	o, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pid := readPID(t, c)
	o.Stop()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still exists after Stop: %v", pid, err)
	}
	if _, err := os.Stat(c.PIDFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pid file is left after Stop: %v", err)
	}
	if log, _ := os.ReadFile(c.LogFile); !strings.Contains(string(log), "stopped in order") {
		t.Errorf("the operator was not stopped by a signal; its log: %s", log)
	}
}

func TestStartFailsWhenTheOperatorEndsBeforeItIsReady(t *testing.T) {
	c := config(t, "die")
	_, err := Start(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), c.LogFile) {
		t.Errorf("got error %v, want one that names the exit status and the log", err)
	}
}

func TestOperatorWithATakenPortGetsAnother(t *testing.T) {
	o, err := Start(t.Context(), config(t, "late"))
	if err != nil {
		t.Fatal(err)
	}
	o.Stop()
}

func TestAKilledOperatorIsStartedAgain(t *testing.T) {
	c := config(t, "serve")
	notices := make(chan string, 10)
	c.Notify = func(format string, args ...any) { notices <- fmt.Sprintf(format, args...) }
	o, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Stop()
	first := readPID(t, c)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if notice := <-notices; !strings.Contains(notice, "signal: killed") {
		t.Errorf("notice = %s, want the signal", notice)
	}
	if notice, want := <-notices,
		fmt.Sprintf("the operator is ready again, as process %d", readPID(t, c)); notice != want {
		t.Errorf("notice = %q, want %q", notice, want)
	}
	if second := readPID(t, c); second == first {
		t.Errorf("the pid file still has process %d", first)
	}
}

func TestProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	c := config(t, "stubborn")
	log, err := os.Create(c.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p, err := start(c, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stop(time.Millisecond)
	if p.fate != "signal: killed" {
		t.Errorf("end of the process = %q, want a kill", p.fate)
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config(t, "serve")
	if _, err := Start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Start = %v, want the context's error", err)
	}
	if _, err := os.Stat(c.PIDFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pid file is left: %v", err)
	}
}

func TestCheckBinarySaysWhatToDo(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, filepath.Dir(plain), plain + "-missing"} {
		err := CheckBinary(path)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--no-operator") {
			t.Errorf("CheckBinary(%s) = %v", path, err)
		}
	}
	if err := CheckBinary("/bin/sh"); err != nil {
		t.Errorf("CheckBinary(/bin/sh) = %v", err)
	}
}

func TestCheckConfigurationReturnsTheOperatorsError(t *testing.T) {
	t.Setenv(behaviour, "refuse")
	err := CheckConfiguration(t.Context(), os.Args[0], "my file")
	if want := `wrong: ["--config" "my file" "--print-config"]`; err == nil || err.Error() != want {
		t.Errorf("an invalid file: got error %v, want %s", err, want)
	}
	t.Setenv(behaviour, "take")
	if err := CheckConfiguration(t.Context(), os.Args[0], "my file"); err != nil {
		t.Errorf("a valid file: got error %v", err)
	}
	if err := CheckConfiguration(t.Context(), os.Args[0]+"-missing", "my file"); err == nil {
		t.Error("a missing operator accepts a file")
	}
}

func TestTheOperatorGetsItsConfiguration(t *testing.T) {
	for _, file := range []string{"", "my file"} {
		c := config(t, "refuse")
		c.Configuration = file
		_, err := Start(t.Context(), c)
		if err == nil {
			t.Fatal("an operator that exits is reported ready")
		}
		log, _ := os.ReadFile(c.LogFile)
		if got := strings.Contains(string(log), `"--config" "my file"`); got != (file != "") {
			t.Errorf("arguments with the file %q = %s", file, log)
		}
	}
}

func TestInstallReturnsTheOperatorsError(t *testing.T) {
	in := Installation{Path: os.Args[0], Kubeconfig: "admin", Namespace: "own", User: "someone"}
	t.Setenv(behaviour, "refuse")
	err := Install(t.Context(), in)
	if want := `wrong: ["--kubeconfig" "admin" "--leader-election-namespace" "own" "--install-for" "someone"]`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("a failing installation: got error %v, want %s", err, want)
	}
	in.Configuration = "my file"
	if err := Install(t.Context(), in); err == nil || !strings.Contains(err.Error(), `"--config" "my file"`) {
		t.Errorf("got error %v, want one that shows the configuration flag", err)
	}
	t.Setenv(behaviour, "take")
	if err := Install(t.Context(), in); err != nil {
		t.Errorf("a successful installation: got error %v", err)
	}
}

func config(t *testing.T, behave string) Config {
	t.Setenv(behaviour, behave)
	dir := t.TempDir()
	return Config{
		Path:       os.Args[0],
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		LogFile:    filepath.Join(dir, "operator.log"),
		PIDFile:    filepath.Join(dir, "operator.pid"),
		Notify:     t.Logf,
	}
}

func readPID(t *testing.T, c Config) int {
	t.Helper()
	content, err := os.ReadFile(c.PIDFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
