// Package command holds the commands of muster, one file each: their flags, what they call, and the exit code. Only
// main may call it. A command reads (observe), derives (view) and prints (show); it decides nothing itself.
package command
