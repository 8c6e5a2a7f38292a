// Node requires this file at its start: every name but loopback leads to the listener of the variable TRAP, at any port.
const net = require('node:net');

const [host, port] = process.env.TRAP.split(':');
const { connect } = net.Socket.prototype;

net.Socket.prototype.connect = function trapped(...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (options?.host && !['localhost', '127.0.0.1', '::1'].includes(options.host)) {
    Object.assign(options, { host, port: Number(port) });
  }
  return connect.apply(this, args);
};
