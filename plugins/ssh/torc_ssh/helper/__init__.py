"""The helper: the program that works on a host, and its protocol. It needs Python 3.8 and the standard library only.

`torc_ssh.session` is the other end, and sends these sources over the connection. Both ends exchange frames
(`torc_ssh.helper.wire`). A frame is either a message, which is a JSON object, or a piece of a file.

Requests are ``{"id": N, "do": NAME, ...}`` with any further arguments. The answers to a request are any number of
``{"id": N, "part": VALUE}``, then one ``{"id": N, "ok": VALUE}`` or ``{"id": N, "error": {"kind": K, "text": T}}``.
Requests without an id get no answer. Events are ``{"event": NAME, ...}``. Requests of the family ``attempts`` are
carried out in their order; all others side by side, so one that depends on another is sent after its answer.

A file is moved as a *stream*, whose number is the id of its request:

- ``put``: pieces of the file follow the request at once, then ``{"do": "put_end", "stream": N, "sha256": S}``. The
  answer comes when the file has its name, or as soon as something fails.
- ``get``: the answer's part is ``{"size": .., "mtime_ns": .., "mode": ..}``, then pieces come, then the answer.
- The receiver acknowledges pieces by ``ack`` with ``stream`` and ``bytes``, and the sender keeps what is not
  acknowledged below the size of a `torc_ssh.helper.window.Window`, so messages never wait long behind pieces.
- ``{"do": "cancel", "stream": N}`` ends a stream without an answer.

Paths are relative to the home folder of the user. Bytes of names that are not UTF-8 are escaped as in `os.fsdecode`.
"""
