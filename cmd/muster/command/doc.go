// Package command implements the commands of muster, one file each: their flags, the packages that they call, and the
// exit code. Only main may call it. A command reads (observe), derives (view) and prints (show); it has no logic of its
// own about jobs.
package command
