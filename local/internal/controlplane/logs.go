package controlplane

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// logs are the components' log files. The libraries use klog: what they log with a context goes to the component's own
// file, what they log globally goes to that of kube-apiserver, which does most of that.
type logs struct {
	etcd, apiserver, scheduler, controllerManager *logFile

	// terminal is the standard error that the process was given.
	terminal *os.File
}

// standardError is the descriptor that libraries print on.
const standardError = 2

type logFile struct {
	path   string
	file   *os.File
	logger klog.Logger
}

// openLogs truncates and opens the files and sends this process's global logging to them.
func openLogs(folder string, verbosity int) (*logs, error) {
	l := &logs{}
	for name, target := range map[string]**logFile{
		"etcd":                    &l.etcd,
		"kube-apiserver":          &l.apiserver,
		"kube-scheduler":          &l.scheduler,
		"kube-controller-manager": &l.controllerManager,
	} {
		path := filepath.Join(folder, name+".log")
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("opening the log of %s: %w", name, err)
		}
		config := textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(verbosity))
		*target = &logFile{path: path, file: file, logger: textlogger.NewLogger(config)}
	}
	if err := l.adoptStandardError(); err != nil {
		l.close()
		return nil, err
	}
	l.adoptGlobals(verbosity)
	return l, nil
}

// adoptStandardError redirects to a file what libraries print on standard error, since the terminal is for the user. A
// crash is shown on both.
func (l *logs) adoptStandardError() error {
	saved, err := unix.FcntlInt(uintptr(standardError), unix.F_DUPFD_CLOEXEC, standardError+1)
	if err != nil {
		return fmt.Errorf("keeping standard error: %w", err)
	}
	l.terminal = os.NewFile(uintptr(saved), "standard error")
	if err := unix.Dup3(int(l.apiserver.file.Fd()), standardError, 0); err != nil {
		return fmt.Errorf("sending standard error to %s: %w", l.apiserver.path, err)
	}
	if err := debug.SetCrashOutput(l.terminal, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("keeping crashes on standard error: %w", err)
	}
	return nil
}

func (l *logs) adoptGlobals(verbosity int) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(verbosity)) // an int is always valid
	options := []klog.LoggerOption{klog.ContextualLogger(true)}
	if writer, ok := l.apiserver.logger.GetSink().(textlogger.KlogBufferWriter); ok {
		options = append(options, klog.WriteKlogBuffer(writer.WriteKlogBuffer))
	}
	klog.SetLoggerWithOptions(l.apiserver.logger, options...)
	log.SetOutput(l.apiserver.file)
	// A library that calls klog.Fatal exits the process; tell the user where the reason is.
	klog.OsExit = func(code int) {
		fmt.Fprintf(l.terminal, "muster-local: a component gave up; the last lines of %s say why\n", l.apiserver.path)
		os.Exit(code)
	}
}

// close restores standard error and discards global logging: a component that has not stopped in time may still log.
func (l *logs) close() {
	klog.Flush()
	klog.SetLogger(klog.New(nil))
	log.SetOutput(io.Discard)
	if l.terminal != nil {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = unix.Dup3(int(l.terminal.Fd()), standardError, 0)
		l.terminal.Close()
	}
	var errs []error
	for _, f := range []*logFile{l.etcd, l.apiserver, l.scheduler, l.controllerManager} {
		if f != nil {
			errs = append(errs, f.file.Close())
		}
	}
	_ = errors.Join(errs...) // nobody is left to read the logs
}
